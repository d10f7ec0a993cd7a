// Compares a list of objects, as JSON on standard input, with what an API server stores, as Flux does, and prints what differs as a JSON
// list. The kubeconfig is that of KUBECONFIG.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/fluxcd/pkg/ssa"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type difference struct {
	Kind      string         `json:"kind"`
	Name      string         `json:"name"`
	Predicted map[string]any `json:"predicted"`
	Live      map[string]any `json:"live"`
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
	kube, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	manager := ssa.NewResourceManager(kube, nil, ssa.Owner{Field: "flux", Group: "flux.example"})
	differences := []difference{}
	for i := range wanted.Items {
		object := &wanted.Items[i]
		entry, live, predicted, err := manager.Diff(context.Background(), object, ssa.DefaultDiffOptions())
		if err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if entry.Action == ssa.UnchangedAction {
			continue
		}
		one := difference{Kind: object.GetKind(), Name: object.GetName()}
		if live != nil && predicted != nil {
			one.Live, one.Predicted = live.Object, predicted.Object
		}
		differences = append(differences, one)
	}
	return json.NewEncoder(os.Stdout).Encode(differences)
}
