//go:build tools

// Package helm3 only names the command to build, so that `go mod tidy` keeps what it needs in go.sum.
package helm3

import _ "helm.sh/helm/v3/cmd/helm"
