// Does with a ControllerRegistration and a ControllerDeployment what Gardener does, by Gardener's own code. The objects are read from
// standard input, as a JSON list; the garden cluster is in memory, the seed is the cluster of KUBECONFIG.
//
//	check      prints what Gardener's API server refuses in them, as a JSON list
//	render     prints the objects of the ManagedResource that gardenlet makes of them, as YAML
//	install    has gardenlet deploy them to the seed, and gardener-resource-manager apply them once
//	remove     has both remove them again
//	registry   serves an empty registry of OCI artefacts, prints its address, and ends with its standard input
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/gardener/gardener/pkg/api/core/validation"
	resourcemanagerconfig "github.com/gardener/gardener/pkg/apis/config/resourcemanager/v1alpha1"
	"github.com/gardener/gardener/pkg/apis/core"
	gardencore "github.com/gardener/gardener/pkg/apis/core/install"
	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/chartrenderer"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	seedfake "github.com/gardener/gardener/pkg/client/kubernetes/fake"
	"github.com/gardener/gardener/pkg/gardenlet/controller/controllerinstallation/controllerinstallation"
	"github.com/gardener/gardener/pkg/resourcemanager/controller/managedresource"
	resourcemanagerpredicate "github.com/gardener/gardener/pkg/resourcemanager/predicate"
	"github.com/gardener/gardener/pkg/utils/oci"
	"github.com/go-logr/logr"
	"github.com/google/go-containerregistry/pkg/registry"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The names that Gardener's own controllers would choose.
const installation, seedName, gardenNamespace = "usher-1", "seed-1", v1beta1constants.GardenNamespace

func main() {
	log.SetLogger(logr.Discard())
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, command string) error {
	if command == "registry" {
		return serveRegistry()
	}
	objects, problems, err := read()
	if err != nil {
		return err
	}
	if command == "check" {
		return json.NewEncoder(os.Stdout).Encode(problems)
	}
	if len(problems) > 0 {
		return fmt.Errorf("refused: %v", problems)
	}
	if command == "render" {
		return render(ctx, objects)
	}
	seed, err := seedOf(os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	if command == "remove" {
		return remove(ctx, objects, seed)
	}
	if err := gardenlet(ctx, objects, seed, false); err != nil {
		return err
	}
	return resourceManager(ctx, seed)
}

// read decodes the objects as Gardener's API server does, unknown fields refused, and validates them.
func read() ([]client.Object, []string, error) {
	var list struct{ Items []json.RawMessage }
	if err := json.NewDecoder(os.Stdin).Decode(&list); err != nil {
		return nil, nil, fmt.Errorf("reading the objects: %w", err)
	}
	scheme := runtime.NewScheme()
	gardencore.Install(scheme)
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	objects, problems := []client.Object{}, []string{}
	for _, item := range list.Items {
		object, _, err := decoder.Decode(item, nil, nil)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		scheme.Default(object)
		internal, err := scheme.ConvertToVersion(object, core.SchemeGroupVersion)
		if err != nil {
			return nil, nil, err
		}
		for _, problem := range validate(internal) {
			problems = append(problems, problem.Error())
		}
		objects = append(objects, object.(client.Object))
	}
	return objects, problems, nil
}

func validate(object runtime.Object) field.ErrorList {
	switch typed := object.(type) {
	case *core.ControllerRegistration:
		return validation.ValidateControllerRegistration(typed)
	case *core.ControllerDeployment:
		return validation.ValidateControllerDeployment(typed)
	}
	return field.ErrorList{field.NotSupported(field.NewPath("kind"), fmt.Sprintf("%T", object), []string{"ControllerRegistration", "ControllerDeployment"})}
}

// garden is a garden cluster with the objects, a seed, and the request to install them there.
func garden(objects []client.Object, removed bool) client.Client {
	var registration, deployment string
	for _, object := range objects {
		switch object.(type) {
		case *gardencorev1beta1.ControllerRegistration:
			registration = object.GetName()
		case *gardencorev1.ControllerDeployment:
			deployment = object.GetName()
		}
	}
	request := &gardencorev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: installation}}
	request.Spec.RegistrationRef.Name = registration
	request.Spec.DeploymentRef = &corev1.ObjectReference{Name: deployment}
	request.Spec.SeedRef = &corev1.ObjectReference{Name: seedName}
	if removed {
		request.DeletionTimestamp = ptr.To(metav1.Now())
		request.Finalizers = []string{"core.gardener.cloud/controllerinstallation"}
	}
	seed := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: seedName}}
	seed.Spec.Settings = &gardencorev1beta1.SeedSettings{Scheduling: &gardencorev1beta1.SeedSettingScheduling{Visible: true}}
	seed.Status.ClusterIdentity = ptr.To(seedName)
	all := append([]client.Object{request, seed}, objects...)
	return fake.NewClientBuilder().WithScheme(kubernetes.GardenScheme).WithStatusSubresource(request).WithObjects(all...).Build()
}

// gardenlet reconciles the installation once.
func gardenlet(ctx context.Context, objects []client.Object, seed kubernetes.Interface, removed bool) error {
	gardenClient := garden(objects, removed)
	reconciler := &controllerinstallation.Reconciler{
		GardenClient:          gardenClient,
		GardenConfig:          &rest.Config{},
		SeedClientSet:         seed,
		HelmRegistry:          oci.NewHelmRegistry(gardenClient),
		Clock:                 clock.RealClock{},
		Identity:              &gardencorev1beta1.Gardener{Version: "1"},
		GardenClusterIdentity: "garden",
		GardenNamespace:       gardenNamespace,
	}
	_, err := reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Name: installation}})
	return err
}

// resourceManager reconciles the ManagedResource of the installation once.
func resourceManager(ctx context.Context, seed kubernetes.Interface) error {
	reconciler := &managedresource.Reconciler{
		SourceClient:     seed.Client(),
		TargetClient:     seed.Client(),
		TargetScheme:     seed.Client().Scheme(),
		TargetRESTMapper: seed.Client().RESTMapper(),
		Config: resourcemanagerconfig.ManagedResourceControllerConfig{
			SyncPeriod:          &metav1.Duration{Duration: time.Minute},
			ManagedByLabelValue: ptr.To("gardener"),
		},
		Clock:                         clock.RealClock{},
		ClassFilter:                   resourcemanagerpredicate.NewClassFilter(v1beta1constants.SeedResourceManagerClass),
		RequeueAfterOnDeletionPending: ptr.To(time.Second),
	}
	_, err := reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: gardenNamespace, Name: installation}})
	return err
}

// remove waits as both controllers do: each is called again until nothing is left.
func remove(ctx context.Context, objects []client.Object, seed kubernetes.Interface) error {
	namespace := &corev1.Namespace{}
	for range 120 {
		if err := errors.Join(gardenlet(ctx, objects, seed, true), resourceManager(ctx, seed)); err != nil {
			return err
		}
		if err := seed.Client().Get(ctx, client.ObjectKey{Name: "extension-" + installation}, namespace); err != nil {
			return client.IgnoreNotFound(err)
		}
		time.Sleep(time.Second)
	}
	return errors.New("the installation is still there after two minutes")
}

func render(ctx context.Context, objects []client.Object) error {
	seedClient := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).Build()
	renderer := chartrenderer.NewWithServerVersion(&version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.0"})
	if err := gardenlet(ctx, objects, seedWith(seedClient, renderer), false); err != nil {
		return err
	}
	resource := &resourcesv1alpha1.ManagedResource{}
	if err := seedClient.Get(ctx, client.ObjectKey{Namespace: gardenNamespace, Name: installation}, resource); err != nil {
		return err
	}
	for _, reference := range resource.Spec.SecretRefs {
		secret := &corev1.Secret{}
		if err := seedClient.Get(ctx, client.ObjectKey{Namespace: gardenNamespace, Name: reference.Name}, secret); err != nil {
			return err
		}
		for _, text := range secret.Data {
			fmt.Printf("---\n%s\n", text)
		}
	}
	return nil
}

func seedOf(kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 100, 200
	seedClient, err := client.New(config, client.Options{Scheme: kubernetes.SeedScheme})
	if err != nil {
		return nil, err
	}
	renderer, err := chartrenderer.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return seedWith(seedClient, renderer), nil
}

// seedWith is not made by Gardener's own constructor, which refuses releases of Kubernetes that this version of Gardener does not know.
func seedWith(seedClient client.Client, renderer chartrenderer.Interface) kubernetes.Interface {
	return seedfake.NewClientSetBuilder().WithClient(seedClient).WithChartRenderer(renderer).Build()
}

func serveRegistry() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	server := &http.Server{Handler: registry.New()}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
