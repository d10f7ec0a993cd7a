//go:build tools

// Package actionlint only names the command to build, so that `go mod tidy` keeps what it needs in go.sum.
package actionlint

import _ "github.com/rhysd/actionlint/cmd/actionlint"
