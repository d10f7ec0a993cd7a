//go:build before_1_35

package main

import (
	"k8s.io/client-go/informers"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// csiManager is empty: NodeVolumeLimits reads CSINodes from the informer itself.
func csiManager(_ informers.SharedInformerFactory) []frameworkruntime.Option {
	return nil
}
