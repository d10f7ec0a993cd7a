//go:build tools

// Package kyverno only names the command to build, so that `go mod tidy` keeps what it needs in go.sum.
package kyverno

import _ "github.com/kyverno/kyverno/cmd/kyverno"
