//go:build tools

// Package kwok only names the command to build, so that `go mod tidy` keeps what it needs in go.sum.
package kwok

import _ "sigs.k8s.io/kwok/cmd/kwok"
