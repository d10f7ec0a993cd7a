//go:build tools

// Keeps the load generator in go.mod, at one version, with everything that it is built from.
package tools

import _ "github.com/tsenart/vegeta/v12"
