//go:build tools

// Package krew only names the command to build, so that `go mod tidy` keeps what it needs in go.sum.
package krew

import _ "sigs.k8s.io/krew/cmd/krew"
