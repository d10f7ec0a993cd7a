//go:build tools

// Package kustomize only names the command to build, so that `go mod tidy` keeps what it needs in go.sum.
package kustomize

import _ "sigs.k8s.io/kustomize/kustomize/v5"
