//go:build tools

// Package helm only names the command to build, so that `go mod tidy` keeps what it needs in go.sum.
package helm

import _ "helm.sh/helm/v4/cmd/helm"
