package kubernetes

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const soon = 60 * time.Second

// TestConstraints has taints, cordons, groups, pools, priorities with preemption, and annotations that change.
func TestConstraints(t *testing.T) {
	placer := os.Getenv("PLACER")
	if placer == "" {
		t.Skip("PLACER does not name the placer command")
	}
	api := newAPIServer()
	defer api.CloseClientConnections()
	for number, zone := range []string{"a", "a", "b", "b"} {
		api.addNode(placedNode(fmt.Sprintf("plain-%d", number), zone, ""))
	}
	for number := range 2 {
		api.addNode(placedNode(fmt.Sprintf("edge-%d", number), "e", "edge"))
	}
	api.changeNode("plain-1", func(node *corev1.Node) { node.Spec.Unschedulable = true })
	api.changeNode("plain-3", func(node *corev1.Node) {
		node.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "others", Effect: corev1.TaintEffectNoSchedule}}
	})
	service := startService(t, placer, api.serviceAddress())
	extender := startProxy(t, service)
	startScheduler(t, api.schedulerAddress(), extender.URL, true)
	keepTaintsAndCordons(t, api, service)
	keepGroups(t, api)
	keepPools(t, api)
	equalPlaces(t, api, service)
	followAnnotations(t, api, service)
	preempt(t, api, service, extender)
}

// Eight pods of two cores fill two nodes: the cordoned and the tainted one get none, and the ninth waits.
func keepTaintsAndCordons(t *testing.T, api *apiServer, service string) {
	t.Helper()
	eventually(t, "a cordoned node is a cordoned NIC", soon, func() bool {
		return strings.Contains(read(t, service, "/v1/nics/plain-1"), `"service": "cordoned"`)
	})
	for number := range 9 {
		api.addPod(pod(fmt.Sprintf("any-%d", number), "NAT", "0.9"))
	}
	eventually(t, "two nodes are full", soon, func() bool { return pending(api) == 1 && waitsFor(api, "") })
	for name, node := range api.placed() {
		if node != "" && node != "plain-0" && node != "plain-2" {
			t.Fatalf("%s is on %s", name, node)
		}
	}
	clear(api)
}

func keepGroups(t *testing.T, api *apiServer) {
	t.Helper()
	for number := range 3 {
		api.addPod(with(pod(fmt.Sprintf("spread-%d", number), "NAT", "0.9"), "spread", "firewalls"))
	}
	eventually(t, "of three that are spread two fit, and the third says why", soon, func() bool {
		return pending(api) == 1 && waitsFor(api, "spread: ")
	})
	api.changeNode("plain-1", func(node *corev1.Node) { node.Spec.Unschedulable = false })
	eventually(t, "an uncordoned node takes it", soon, func() bool {
		return pending(api) == 0 && count(api, "plain-0") == 1 && count(api, "plain-1") == 1 && count(api, "plain-2") == 1
	})
	clear(api)
	for number := range 3 {
		api.addPod(with(pod(fmt.Sprintf("apart-%d", number), "NAT", "0.9"), "apart", "firewalls"))
	}
	eventually(t, "of three that are apart two fit in two zones", soon, func() bool {
		return pending(api) == 1 && waitsFor(api, "apart: ") &&
			count(api, "plain-0")+count(api, "plain-1") == 1 && count(api, "plain-2") == 1
	})
	api.addNode(placedNode("plain-4", "c", ""))
	eventually(t, "a node of a third zone takes the third", soon, func() bool { return count(api, "plain-4") == 1 })
	clear(api)
}

func keepPools(t *testing.T, api *apiServer) {
	t.Helper()
	for number := range 8 {
		api.addPod(with(pod(fmt.Sprintf("tunnel-%d", number), "NAT", "0.9"), "pool", "edge"))
	}
	eventually(t, "pods of a pool fill its nodes", soon, func() bool {
		return count(api, "edge-0") == 4 && count(api, "edge-1") == 4
	})
	api.addPod(with(pod("tunnel-8", "NAT", "0.9"), "pool", "edge"))
	eventually(t, "and no others", soon, func() bool { return waitsFor(api, "pool: ") })
}

// A pod that changes stays where it is, as what it asks for now; an event says where that cannot be kept.
func followAnnotations(t *testing.T, api *apiServer, service string) {
	t.Helper()
	id := "pod/default/tunnel-0/uid-tunnel-0"
	home := api.placed()["tunnel-0"]
	asks := func(text string) func() bool {
		return func() bool { return strings.Contains(read(t, service, "/v1/tenants/"+id), text) }
	}
	api.annotate("tunnel-0", map[string]string{"sla-drop": "0.8", "flows": "20000"})
	eventually(t, "annotations that change are followed", soon, asks(`"sla_drop": 0.8`))
	if len(api.eventsOn("tunnel-0")) != 0 || !strings.Contains(read(t, service, "/v1/log?after=0"), `"event": "change"`) {
		t.Fatal("the change was kept, and is no change, or has an event")
	}
	api.annotate("tunnel-0", map[string]string{"sla-drop": "0.0001"})
	eventually(t, "what cannot be kept is an event on the pod", soon, func() bool {
		events := api.eventsOn("tunnel-0")
		return len(events) == 1 && strings.HasPrefix(events[0], "NotAsAsked ") && asks(`"sla_drop": 0.0001`)()
	})
	t.Logf("event: %s", api.eventsOn("tunnel-0")[0])
	api.annotate("tunnel-0", map[string]string{"sla-drop": "a little"})
	eventually(t, "so is what makes no sense", soon, func() bool { return len(api.eventsOn("tunnel-0")) == 2 })
	if api.placed()["tunnel-0"] != home || places(t, service)["tunnel-0"] != home {
		t.Fatal("a pod that changed was moved")
	}
	clear(api)
}

// On each node of the pool are one pod that takes most of the processors and three small ones. The scheduler would evict
// the first for a pod of higher priority, and the extender the others, too, beside which that pod would not keep its SLA.
func preempt(t *testing.T, api *apiServer, service string, extender *proxy) {
	t.Helper()
	for number := range 2 {
		for other := range 4 {
			low := with(pod(fmt.Sprintf("low-%d-%d", number, other), "NAT", "0.9"), "pool", "edge")
			low = requesting(low, 1+39*((other+1)/4), int32(number))
			api.addPod(low)
			eventually(t, "a pod of low priority runs", soon, func() bool { return api.placed()[low.Name] != "" })
		}
	}
	equalPlaces(t, api, service)
	before := api.placed()
	api.addPod(requesting(with(pod("equal", "NAT", "0.001"), "pool", "edge"), 40, 0))
	eventually(t, "nobody leaves for a pod of no higher priority", soon, func() bool {
		return api.message("equal") != "" && pending(api) == 1
	})
	api.deletePod("equal")
	api.addPod(requesting(with(pod("high", "NAT", "0.001"), "pool", "edge"), 40, 10))
	eventually(t, "pods of lower priority leave for one of higher", soon, func() bool { return api.placed()["high"] != "" })
	home, gone := api.placed()["high"], []string{}
	for name, node := range before {
		if _, there := api.placed()[name]; !there {
			gone = append(gone, name)
			if node != home {
				t.Fatalf("%s left %s for a pod on %s", name, node, home)
			}
		}
	}
	t.Logf("high is on %s, for which left %v; preempt was asked %d times", home, gone, extender.preempted.Load())
	if home != "edge-0" || extender.preempted.Load() == 0 || len(gone) < 2 {
		t.Fatal("others have a lower priority, or the extender named no further pod")
	}
	equalPlaces(t, api, service)
}

func placedNode(name, zone, pool string) *corev1.Node {
	made := node(name)
	made.Labels["topology.kubernetes.io/zone"] = zone
	if pool != "" {
		made.Labels["nf-placer.io/pool"] = pool
	}
	return made
}

func with(pod *corev1.Pod, annotation, value string) *corev1.Pod {
	pod.Annotations["nf-placer.io/"+annotation] = value
	return pod
}

func requesting(pod *corev1.Pod, processors int, priority int32) *corev1.Pod {
	pod.Spec.Priority = &priority
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(fmt.Sprint(processors))
	return pod
}

func clear(api *apiServer) {
	for name := range api.placed() {
		api.deletePod(name)
	}
}

func count(api *apiServer, node string) int {
	found := 0
	for _, home := range api.placed() {
		if home == node {
			found++
		}
	}
	return found
}

// Whether a pod is pending, and says a reason with this text.
func waitsFor(api *apiServer, text string) bool {
	message := onePendingMessage(api)
	return message != "" && strings.Contains(message, text)
}
