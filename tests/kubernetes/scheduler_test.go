// Package kubernetes runs the real kube-scheduler with `placer serve` as its extender, against an API server in memory,
// and, with the tag etcd, against a real one.
package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
)

const (
	nodeCount = 50
	nicModel  = "bluefield-2"
	stale     = "stale" // the pod whose first bind comes too late
	spoilers  = 8       // instances that come before it
	ofPod     = "X-Pod"
)

var nfs = []string{"NAT", "NIDS", "FlowMonitor", "ACL", "IPTunnel"}

// A cluster, as the tests change it and look at it.
type cluster interface {
	serviceAddress() string   // of its API server for the service
	schedulerAddress() string // of its API server for kube-scheduler
	addNode(node *corev1.Node)
	addPod(pod *corev1.Pod)
	deletePod(name string)
	label(node, model string)         // as a NIC of this model; as none if it is empty
	run(pod *corev1.Pod, node string) // whatever a scheduler says
	delayLists(by time.Duration)      // answers to lists of the service come so late
	cutWatches()
	placed() map[string]string // nodes of pods by name; "" for one that is pending
	message(name string) string
}

// TestScheduler goes through the life of a cluster whose API server is in memory.
func TestScheduler(t *testing.T) {
	api := newAPIServer()
	defer api.CloseClientConnections()
	goThroughLife(t, api, true)
}

// TestSchedulerThatSendsNodes is TestScheduler with whole nodes in place of their names, as by default.
func TestSchedulerThatSendsNodes(t *testing.T) {
	api := newAPIServer()
	defer api.CloseClientConnections()
	goThroughLife(t, api, false)
}

// Pods are placed, wait with a reason, are refused when bound on old knowledge, leave, and nothing is missed when watches
// are cut, nodes lose their labels, pods run that do not fit, or lists come late.
func goThroughLife(t *testing.T, api cluster, nodeCacheCapable bool) {
	t.Helper()
	placer := os.Getenv("PLACER")
	if placer == "" {
		t.Skip("PLACER does not name the placer command")
	}
	for number := range nodeCount {
		api.addNode(node(fmt.Sprintf("node-%02d", number)))
	}
	service := startService(t, placer, api.serviceAddress())
	extender := startProxy(t, service)
	startScheduler(t, api.schedulerAddress(), extender.URL, nodeCacheCapable)

	for number := range 100 {
		api.addPod(pod(fmt.Sprintf("pod-%03d", number), nfs[number%len(nfs)], "0.1"))
	}
	eventually(t, "100 pods are bound", 120*time.Second, func() bool { return pending(api) == 0 })
	equalPlaces(t, api, service)

	// eight cores a node: no more than 200 pods of two cores
	for number := 100; number < 240; number++ {
		api.addPod(pod(fmt.Sprintf("pod-%03d", number), nfs[number%len(nfs)], "0.1"))
	}
	eventually(t, "pods that fit nowhere say why", 120*time.Second, func() bool {
		waiting := 0
		for name, node := range api.placed() {
			if node == "" && !saysWhy(api.message(name)) {
				return false
			}
			if node == "" {
				waiting++
			}
		}
		return waiting > 0
	})
	t.Logf("%d of 240 pods are pending, one with: %s", pending(api), onePendingMessage(api))

	before := pending(api)
	for _, name := range boundPods(api)[:10] {
		api.deletePod(name)
	}
	eventually(t, "pending pods take the places of deleted ones", 120*time.Second, func() bool {
		return pending(api) < before
	})

	for _, name := range boundPods(api)[:20] {
		api.deletePod(name)
	}
	extender.spoilNext.Store(true)
	api.addPod(pod(stale, "NAT", "0.5"))
	eventually(t, "a stale bind is refused", 60*time.Second, func() bool { return extender.refused.Load() > 0 })
	eventually(t, "and placed elsewhere", 120*time.Second, func() bool { return api.placed()[stale] != "" })

	api.cutWatches()
	gone := boundPods(api)[0]
	api.deletePod(gone)
	api.cutWatches()
	eventually(t, "a pod that was deleted while watches were cut has left", 60*time.Second, func() bool {
		_, there := places(t, service)[gone]
		return !there
	})
	eventually(t, "the service has what the cluster has", 60*time.Second, func() bool { return same(t, api, service) })

	for name := range api.placed() {
		api.deletePod(name)
	}
	for number := range spoilers {
		send(t, service, map[string]any{"event": "depart", "id": fmt.Sprintf("other-%d", number)})
	}
	for number := range nodeCount - 2 {
		api.label(fmt.Sprintf("node-%02d", number), "")
	}
	eventually(t, "only two nodes have a label", 60*time.Second, func() bool {
		return strings.Count(read(t, service, "/v1/nics?limit=1000"), `"service": "up"`) == 2
	})
	for number := range 2 {
		api.addPod(pod(fmt.Sprintf("labelled-%d", number), "NAT", "0.5"))
	}
	eventually(t, "pods are bound to nodes with a label", 60*time.Second, func() bool { return pending(api) == 0 })
	for name, node := range api.placed() {
		if node != "node-48" && node != "node-49" {
			t.Fatalf("%s is on %s", name, node)
		}
	}

	api.run(pod("unknown", "an NF without models", "0.5"), "node-48")
	eventually(t, "a pod that cannot be counted is reported", 60*time.Second, func() bool {
		return strings.Contains(read(t, service, "/metrics"), "placer_uncounted_pods 1.0")
	})
	api.addPod(pod("after", "NAT", "0.5"))
	eventually(t, "its node takes no other", 60*time.Second, func() bool { return api.placed()["after"] == "node-49" })
	api.deletePod("unknown")
	api.label("node-49", "")
	api.addPod(pod("again", "NAT", "0.5"))
	eventually(t, "until it has left", 60*time.Second, func() bool { return api.placed()["again"] == "node-48" })

	api.label("node-49", nicModel)
	api.delayLists(4 * time.Second)
	api.cutWatches()
	time.Sleep(2 * time.Second) // the lists have been taken, and are on their way
	api.addPod(pod("late", "NAT", "0.5"))
	eventually(t, "a pod is bound meanwhile", 60*time.Second, func() bool { return api.placed()["late"] != "" })
	api.delayLists(0)
	time.Sleep(4 * time.Second)
	log := read(t, service, "/v1/log?after=0")
	if strings.Count(log, `"event": {"event": "arrive", "id": "pod/default/late/`) != 1 || strings.Contains(
		log, `"event": {"event": "depart", "id": "pod/default/late/`) {
		t.Fatal("the pod has left while it ran")
	}
	eventually(t, "the service has what the cluster has", 60*time.Second, func() bool { return same(t, api, service) })
}

func labels(model string) map[string]string {
	if model == "" {
		return map[string]string{}
	}
	return map[string]string{"nf-placer.io/nic-model": model}
}

func node(name string) *corev1.Node {
	allocatable := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("64Gi"),
		corev1.ResourcePods: resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels(nicModel)},
		Status: corev1.NodeStatus{
			Allocatable: allocatable, Capacity: allocatable,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

func pod(name, nf, drop string) *corev1.Pod {
	one := corev1.ResourceList{"nf-placer.io/nf": resource.MustParse("1")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "default", UID: types.UID("uid-" + name), CreationTimestamp: metav1.Now(),
			Annotations: map[string]string{"nf-placer.io/nf": nf, "nf-placer.io/sla-drop": drop},
		},
		Spec: corev1.PodSpec{
			SchedulerName: "default-scheduler", RestartPolicy: corev1.RestartPolicyAlways,
			Containers: []corev1.Container{{
				Name: "nf", Image: "nf", Resources: corev1.ResourceRequirements{Requests: one, Limits: one},
			}},
		},
	}
}

// `placer serve` for this API server; returns its address.
func startService(t *testing.T, placer, api string) string {
	t.Helper()
	address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	words := strings.Fields(placer)
	state := filepath.Join(t.TempDir(), "fleet.db")
	arguments := append(words[1:], "serve", "--state", state, "--kubernetes", api, "--listen", address, "--quiet")
	process := exec.Command(words[0], arguments...)
	process.Stdout, process.Stderr = os.Stderr, os.Stderr
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Process.Kill(); _ = process.Wait() })
	eventually(t, "the service is ready", 120*time.Second, func() bool {
		answer, err := http.Get("http://" + address + "/readyz")
		if err == nil {
			answer.Body.Close()
		}
		return err == nil && answer.StatusCode == http.StatusOK
	})
	return "http://" + address
}

// A proxy in front of the extender, which spoils a bind of one pod when it is asked to, sees that it is refused, and
// counts how often it is asked to preempt.
type proxy struct {
	*http.Server
	URL       string
	refused   atomic.Int64
	preempted atomic.Int64 // requests for who is to be evicted
	spoilNext atomic.Bool
}

func startProxy(t *testing.T, service string) *proxy {
	t.Helper()
	target, err := url.Parse(service)
	if err != nil {
		t.Fatal(err)
	}
	one := &proxy{URL: fmt.Sprintf("http://127.0.0.1:%d", freePort(t))}
	forward := &httputil.ReverseProxy{Rewrite: func(request *httputil.ProxyRequest) {
		request.SetURL(target) // and its Host, as the service answers to no other
		request.Out.Header.Set(ofPod, request.In.Header.Get(ofPod))
	}}
	forward.ModifyResponse = func(answer *http.Response) error {
		if answer.Request.Header.Get(ofPod) != stale {
			return nil
		}
		var body bytes.Buffer
		if _, err := body.ReadFrom(answer.Body); err != nil {
			return err
		}
		if !strings.Contains(body.String(), `"Error": ""`) {
			one.refused.Add(1)
		}
		answer.Body = nopCloser{bytes.NewReader(body.Bytes())}
		return nil
	}
	one.Server = &http.Server{Addr: strings.TrimPrefix(one.URL, "http://"), Handler: http.HandlerFunc(
		func(writer http.ResponseWriter, request *http.Request) {
			if strings.HasSuffix(request.URL.Path, "/bind") {
				one.spoil(service, request)
			}
			if strings.HasSuffix(request.URL.Path, "/preempt") {
				one.preempted.Add(1)
			}
			forward.ServeHTTP(writer, request)
		})}
	go func() { _ = one.ListenAndServe() }()
	t.Cleanup(func() { _ = one.Close() })
	return one
}

type nopCloser struct{ *bytes.Reader }

func (nopCloser) Close() error { return nil }

// Another client fills the node between filter and bind.
func (one *proxy) spoil(service string, request *http.Request) {
	var body bytes.Buffer
	_, _ = body.ReadFrom(request.Body)
	request.Body = nopCloser{bytes.NewReader(body.Bytes())}
	var binding struct{ PodName, Node string }
	if json.Unmarshal(body.Bytes(), &binding) != nil {
		return
	}
	request.Header.Set(ofPod, binding.PodName)
	if binding.PodName != stale || !one.spoilNext.CompareAndSwap(true, false) {
		return
	}
	for number := range spoilers {
		event, _ := json.Marshal(map[string]any{
			"event": "arrive", "id": fmt.Sprintf("other-%d", number), "nf": "ACL", "sla_drop": 0.9, "nic": binding.Node,
		})
		answer, err := http.Post(service+"/v1/events", "application/json", bytes.NewReader(event))
		if err == nil {
			answer.Body.Close()
		}
	}
}

func startScheduler(t *testing.T, api, extender string, nodeCacheCapable bool) {
	t.Helper()
	folder := t.TempDir()
	kubeconfig := filepath.Join(folder, "kubeconfig")
	write(t, kubeconfig, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "test",
"clusters": [{"name": "test", "cluster": {"server": %q}}],
"contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}], "users": [{"name": "test", "user": {}}]}`, api))
	config := filepath.Join(folder, "config.yaml")
	write(t, config, fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection:
  {kubeconfig: %q, contentType: application/json, acceptContentTypes: application/json, qps: 1000, burst: 1000}
percentageOfNodesToScore: 100
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 2
extenders:
  - urlPrefix: %s/k8s/v1
    filterVerb: filter
    prioritizeVerb: prioritize
    preemptVerb: preempt
    bindVerb: bind
    weight: 10
    nodeCacheCapable: %t
    httpTimeout: 10s
    managedResources: [{name: nf-placer.io/nf, ignoredByScheduler: true}]
`, kubeconfig, extender, nodeCacheCapable))
	command := app.NewSchedulerCommand()
	command.SetArgs([]string{"--config", config, "--secure-port", "0", "--authentication-skip-lookup=true"})
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go func() { _ = command.ExecuteContext(ctx) }()
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func eventually(t *testing.T, what string, within time.Duration, holds func() bool) {
	t.Helper()
	begun := time.Now()
	for !holds() {
		if time.Since(begun) > within {
			t.Fatalf("not within %s: %s", within, what)
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Logf("after %s: %s", time.Since(begun).Round(time.Millisecond), what)
}

func pending(api cluster) int {
	found := 0
	for _, node := range api.placed() {
		if node == "" {
			found++
		}
	}
	return found
}

func boundPods(api cluster) []string {
	found := []string{}
	placed := api.placed()
	for _, name := range sorted(placed) {
		if placed[name] != "" {
			found = append(found, name)
		}
	}
	return found
}

func saysWhy(message string) bool {
	return strings.Contains(message, "too few free cores") || strings.Contains(message, "would violate its SLA")
}

func onePendingMessage(api cluster) string {
	for name, node := range api.placed() {
		if node == "" {
			return api.message(name)
		}
	}
	return ""
}

// Send an event; one that is refused is ignored.
func send(t *testing.T, service string, event map[string]any) {
	t.Helper()
	body, _ := json.Marshal(event)
	answer, err := http.Post(service+"/v1/events", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
}

func read(t *testing.T, service, path string) string {
	t.Helper()
	answer, err := http.Get(service + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Pods by name with their NICs, as the service has them.
func places(t *testing.T, service string) map[string]string {
	t.Helper()
	answer, err := http.Get(service + "/v1/nics?limit=1000")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var page struct {
		Nics []struct {
			Nic     string
			Tenants []struct{ ID string }
		}
	}
	if err := json.NewDecoder(answer.Body).Decode(&page); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, nic := range page.Nics {
		for _, tenant := range nic.Tenants {
			if parts := strings.Split(tenant.ID, "/"); len(parts) == 4 && parts[0] == "pod" {
				found[parts[2]] = nic.Nic
			}
		}
	}
	return found
}

func same(t *testing.T, api cluster, service string) bool {
	t.Helper()
	there := places(t, service)
	bound := 0
	for name, node := range api.placed() {
		if node != "" {
			bound++
			if there[name] != node {
				return false
			}
		}
	}
	return bound == len(there)
}

func equalPlaces(t *testing.T, api cluster, service string) {
	t.Helper()
	eventually(t, "the service has what the cluster has", 10*time.Second, func() bool { return same(t, api, service) })
}
