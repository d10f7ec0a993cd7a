//go:build tools

// Package kubernetes only names the commands to build, so that `go mod tidy` keeps what they need in go.sum.
package kubernetes

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
)
