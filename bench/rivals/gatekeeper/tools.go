//go:build tools

// Package gatekeeper only names the command to build, so that `go mod tidy` keeps what it needs in go.sum.
package gatekeeper

import _ "github.com/open-policy-agent/gatekeeper/v3"
