//go:build tools

// Package promtool only names the command to build, so that `go mod tidy` keeps what it needs in go.sum.
package promtool

import _ "github.com/prometheus/prometheus/cmd/promtool"
