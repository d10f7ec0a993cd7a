// Compares a list of objects, as JSON on standard input, with what an API server stores, as Argo CD does, and prints what differs as a
// JSON list. The kubeconfig is that of KUBECONFIG.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/diff"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

type difference struct {
	Kind      string          `json:"kind"`
	Name      string          `json:"name"`
	Predicted json.RawMessage `json:"predicted"`
	Live      json.RawMessage `json:"live"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var wanted unstructured.UnstructuredList
	if err := json.NewDecoder(os.Stdin).Decode(&wanted); err != nil {
		return fmt.Errorf("reading the objects: %w", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 100, 200
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	groups, err := restmapper.GetAPIGroupResources(discoverer)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	differences := []difference{}
	for i := range wanted.Items {
		object := &wanted.Items[i]
		live, err := read(client, mapper, object)
		if err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
		result, err := diff.Diff(object, live)
		if err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if result.Modified {
			differences = append(differences, difference{
				Kind: object.GetKind(), Name: object.GetName(),
				Predicted: result.PredictedLive, Live: result.NormalizedLive,
			})
		}
	}
	return json.NewEncoder(os.Stdout).Encode(differences)
}

func read(client dynamic.Interface, mapper meta.RESTMapper, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return client.Resource(mapping.Resource).Namespace(object.GetNamespace()).Get(context.Background(), object.GetName(), metav1.GetOptions{})
	}
	return client.Resource(mapping.Resource).Get(context.Background(), object.GetName(), metav1.GetOptions{})
}
