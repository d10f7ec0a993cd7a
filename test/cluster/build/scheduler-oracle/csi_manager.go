//go:build !before_1_35

package main

import (
	"k8s.io/client-go/informers"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// csiManager gives NodeVolumeLimits its view of CSINodes.
func csiManager(factory informers.SharedInformerFactory) []frameworkruntime.Option {
	manager := nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())
	return []frameworkruntime.Option{frameworkruntime.WithSharedCSIManager(manager)}
}
