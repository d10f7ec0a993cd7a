// Command scheduler-oracle judges pods on nodes by the filters of kube-scheduler itself, over a snapshot that is given: no API server, no
// scores, no preemption. Each line of the input is a world with pods to judge, each line of the output what the filters said of them. It
// names no type that moved between releases, so that one source builds from 1.33 to 1.37; ./csi_manager*.go hold the only difference.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sort"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

type world struct {
	Nodes                  []*v1.Node                      `json:"nodes"`
	Pods                   []*v1.Pod                       `json:"pods"`
	Namespaces             []*v1.Namespace                 `json:"namespaces"`
	PersistentVolumes      []*v1.PersistentVolume          `json:"persistentVolumes"`
	PersistentVolumeClaims []*v1.PersistentVolumeClaim     `json:"persistentVolumeClaims"`
	StorageClasses         []*storagev1.StorageClass       `json:"storageClasses"`
	CSINodes               []*storagev1.CSINode            `json:"csiNodes"`
	CSIDrivers             []*storagev1.CSIDriver          `json:"csiDrivers"`
	CSIStorageCapacities   []*storagev1.CSIStorageCapacity `json:"csiStorageCapacities"`
	// Candidates are the pods to judge.
	Candidates []*v1.Pod `json:"candidates"`
	// Brief leaves the verdicts out: only the time is asked for.
	Brief bool `json:"brief"`
}

// verdict is what the filters said of one node, or of all.
type verdict struct {
	// Node is empty for a verdict on all nodes.
	Node    string   `json:"node,omitempty"`
	Code    string   `json:"code"`
	Plugin  string   `json:"plugin,omitempty"`
	Reasons []string `json:"reasons,omitempty"`
}

type judged struct {
	// All is set where the pod was rejected before any node was looked at.
	All   *verdict  `json:"all,omitempty"`
	Nodes []verdict `json:"nodes,omitempty"`
}

type answer struct {
	Pods []judged `json:"pods"`
	// Verdicts counts the pairs of pod and node, CPUSeconds the time of judging them.
	Verdicts   int     `json:"verdicts"`
	CPUSeconds float64 `json:"cpuSeconds"`
	Error      string  `json:"error,omitempty"`
}

// removed are the plugins that need more than a snapshot.
var removed = map[string]bool{
	"DynamicResources": true, "DefaultPreemption": true, "GangScheduling": true,
	"TopologyPlacementGenerator": true, "PodGroupPodsCount": true,
}

// static is an informer whose objects are there from the beginning.
type static struct {
	cache.SharedIndexInformer
}

func (s *static) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	for _, object := range s.GetIndexer().List() {
		handler.OnAdd(object, true)
	}
	return nil, nil
}

func inform[T runtime.Object](factory informers.SharedInformerFactory, example T, objects []T) error {
	informer := factory.InformerFor(example, func(_ kubernetes.Interface, _ time.Duration) cache.SharedIndexInformer {
		indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
		return &static{cache.NewSharedIndexInformer(&cache.ListWatch{}, example, 0, indexers)}
	})
	for _, object := range objects {
		if err := informer.GetIndexer().Add(object); err != nil {
			return err
		}
	}
	return nil
}

func profile() (*config.KubeSchedulerProfile, error) {
	configuration, err := latest.Default()
	if err != nil {
		return nil, err
	}
	profile := configuration.Profiles[0]
	kept := profile.Plugins.MultiPoint.Enabled[:0]
	for _, plugin := range profile.Plugins.MultiPoint.Enabled {
		if !removed[plugin.Name] {
			kept = append(kept, plugin)
		}
	}
	profile.Plugins.MultiPoint.Enabled = kept
	return &profile, nil
}

func informerFactory(w *world) (informers.SharedInformerFactory, error) {
	factory := informers.NewSharedInformerFactory(nil, 0)
	for _, err := range []error{
		inform(factory, &v1.Node{}, w.Nodes),
		inform(factory, &v1.Pod{}, w.Pods),
		inform(factory, &v1.Namespace{}, w.Namespaces),
		inform(factory, &v1.PersistentVolume{}, w.PersistentVolumes),
		inform(factory, &v1.PersistentVolumeClaim{}, w.PersistentVolumeClaims),
		inform(factory, &storagev1.StorageClass{}, w.StorageClasses),
		inform(factory, &storagev1.CSINode{}, w.CSINodes),
		inform(factory, &storagev1.CSIDriver{}, w.CSIDrivers),
		inform(factory, &storagev1.CSIStorageCapacity{}, w.CSIStorageCapacities),
	} {
		if err != nil {
			return nil, err
		}
	}
	return factory, nil
}

// placed are the pods that the scheduler counts: with a node that exists, and not ended.
func placed(w *world) []*v1.Pod {
	names := map[string]bool{}
	for _, node := range w.Nodes {
		names[node.Name] = true
	}
	pods := []*v1.Pod{}
	for _, pod := range w.Pods {
		ended := pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
		if names[pod.Spec.NodeName] && !ended {
			pods = append(pods, pod)
		}
	}
	return pods
}

func prepare(ctx context.Context, w *world) (framework.Framework, *internalcache.Snapshot, error) {
	factory, err := informerFactory(w)
	if err != nil {
		return nil, nil, err
	}
	defaults, err := profile()
	if err != nil {
		return nil, nil, err
	}
	snapshot := internalcache.NewSnapshot(placed(w), w.Nodes)
	options := append(csiManager(factory),
		frameworkruntime.WithSnapshotSharedLister(snapshot),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithParallelism(1),
	)
	fw, err := frameworkruntime.NewFramework(ctx, plugins.NewInTreeRegistry(), defaults, options...)
	return fw, snapshot, err
}

// first is the plugin that narrowed the nodes; of several the first by name.
func first(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

func judge(ctx context.Context, fw framework.Framework, snapshot *internalcache.Snapshot, pod *v1.Pod) judged {
	for _, plugin := range fw.PreEnqueuePlugins() {
		if status := plugin.PreEnqueue(ctx, pod); !status.IsSuccess() {
			return judged{All: &verdict{Code: status.Code().String(), Plugin: plugin.Name(), Reasons: status.Reasons()}}
		}
	}
	state := framework.NewCycleState()
	narrowed, status, narrowing := fw.RunPreFilterPlugins(ctx, state, pod)
	names := narrowing.UnsortedList()
	sort.Strings(names)
	if !status.IsSuccess() {
		plugin := status.Plugin()
		if plugin == "" {
			plugin = first(names)
		}
		return judged{All: &verdict{Code: status.Code().String(), Plugin: plugin, Reasons: status.Reasons()}}
	}
	nodes, err := snapshot.NodeInfos().List()
	if err != nil {
		return judged{All: &verdict{Code: "Error", Reasons: []string{err.Error()}}}
	}
	result := judged{Nodes: make([]verdict, 0, len(nodes))}
	for _, node := range nodes {
		name := node.Node().Name
		if !narrowed.AllNodes() && !narrowed.NodeNames.Has(name) {
			reason := fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", names)
			result.Nodes = append(result.Nodes, verdict{name, "UnschedulableAndUnresolvable", first(names), []string{reason}})
			continue
		}
		one := verdict{Node: name, Code: "Success"}
		if status := fw.RunFilterPlugins(ctx, state, pod, node); !status.IsSuccess() {
			one = verdict{name, status.Code().String(), status.Plugin(), status.Reasons()}
		}
		result.Nodes = append(result.Nodes, one)
	}
	return result
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func answerTo(ctx context.Context, line []byte) (result answer) {
	result.Pods = []judged{}
	defer func() {
		if panicked := recover(); panicked != nil {
			result.Error = fmt.Sprint(panicked)
		}
	}()
	w := &world{}
	if err := json.Unmarshal(line, w); err != nil {
		result.Error = err.Error()
		return result
	}
	fw, snapshot, err := prepare(ctx, w)
	if err != nil {
		result.Error = err.Error()
		return result
	}
	started := cpuSeconds()
	for _, pod := range w.Candidates {
		one := judge(ctx, fw, snapshot, pod)
		result.Verdicts += len(w.Nodes)
		if !w.Brief {
			result.Pods = append(result.Pods, one)
		}
	}
	result.CPUSeconds = cpuSeconds() - started
	return result
}

func run() error {
	metrics.InitMetrics()
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	output := bufio.NewWriter(os.Stdout)
	for {
		line, err := input.ReadBytes('\n')
		if len(line) > 1 {
			ctx, cancel := context.WithCancel(context.Background())
			text, encodeErr := json.Marshal(answerTo(ctx, line))
			cancel()
			if encodeErr != nil {
				return encodeErr
			}
			if _, err := output.Write(append(text, '\n')); err != nil {
				return err
			}
			if err := output.Flush(); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
