//go:build tools

// Package etcd only names the command to build, so that `go mod tidy` keeps what it needs in go.sum.
package etcd

import _ "go.etcd.io/etcd/server/v3"
