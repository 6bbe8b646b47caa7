package kubernetes

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An API server in memory: nodes and pods with list, watch, bind, status and delete, and events; all else is empty.
type apiServer struct {
	*httptest.Server
	lock      sync.Mutex
	changed   *sync.Cond
	version   int
	forgotten int // watches from before this version answer 410
	cuts      int // watches that began before are cut
	nodes     map[string]*corev1.Node
	pods      map[string]*corev1.Pod
	history   []change
	events    []corev1.Event // on pods, of the service
	listDelay time.Duration  // of the answers to lists of the service
}

type change struct {
	version  int
	resource string
	kind     string
	object   []byte
}

func newAPIServer() *apiServer {
	server := &apiServer{nodes: map[string]*corev1.Node{}, pods: map[string]*corev1.Pod{}}
	server.changed = sync.NewCond(&server.lock)
	server.Server = httptest.NewServer(http.HandlerFunc(server.answer))
	return server
}

func (server *apiServer) serviceAddress() string { return server.URL }

func (server *apiServer) schedulerAddress() string { return server.URL }

func (server *apiServer) addNode(node *corev1.Node) {
	server.lock.Lock()
	defer server.lock.Unlock()
	node.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}
	server.nodes[node.Name] = node
	server.note("nodes", "ADDED", node)
}

func (server *apiServer) addPod(pod *corev1.Pod) {
	server.lock.Lock()
	defer server.lock.Unlock()
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	pod.Status.Phase = corev1.PodPending
	server.pods[pod.Name] = pod
	server.note("pods", "ADDED", pod)
}

func (server *apiServer) deletePod(name string) {
	server.lock.Lock()
	defer server.lock.Unlock()
	if pod := server.pods[name]; pod != nil {
		delete(server.pods, name)
		server.note("pods", "DELETED", pod)
	}
}

func (server *apiServer) label(name, model string) {
	server.changeNode(name, func(node *corev1.Node) { node.Labels = labels(model) })
}

func (server *apiServer) changeNode(name string, change func(node *corev1.Node)) {
	server.lock.Lock()
	defer server.lock.Unlock()
	changed := server.nodes[name].DeepCopy()
	change(changed)
	server.nodes[name] = changed
	server.note("nodes", "MODIFIED", changed)
}

func (server *apiServer) annotate(name string, annotations map[string]string) {
	server.lock.Lock()
	defer server.lock.Unlock()
	changed := server.pods[name].DeepCopy()
	for key, value := range annotations {
		changed.Annotations["nf-placer.io/"+key] = value
	}
	server.pods[name] = changed
	server.note("pods", "MODIFIED", changed)
}

// Events of the service on a pod.
func (server *apiServer) eventsOn(name string) []string {
	server.lock.Lock()
	defer server.lock.Unlock()
	found := []string{}
	for _, event := range server.events {
		if event.InvolvedObject.Kind == "Pod" && event.InvolvedObject.UID == server.pods[name].UID {
			found = append(found, event.Reason+" "+event.Message)
		}
	}
	return found
}

func (server *apiServer) run(pod *corev1.Pod, node string) {
	server.lock.Lock()
	defer server.lock.Unlock()
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	pod.Spec.NodeName, pod.Status.Phase = node, corev1.PodRunning
	server.pods[pod.Name] = pod
	server.note("pods", "ADDED", pod)
}

func (server *apiServer) delayLists(by time.Duration) {
	server.lock.Lock()
	defer server.lock.Unlock()
	server.listDelay = by
}

// All watches end, and none can be continued: clients have to list again.
func (server *apiServer) cutWatches() {
	server.lock.Lock()
	defer server.lock.Unlock()
	server.version++
	server.forgotten = server.version
	server.history = nil
	server.cuts++
	server.changed.Broadcast()
}

// Pods by name with their nodes; an empty node where a pod is pending.
func (server *apiServer) placed() map[string]string {
	server.lock.Lock()
	defer server.lock.Unlock()
	found := map[string]string{}
	for name, pod := range server.pods {
		found[name] = pod.Spec.NodeName
	}
	return found
}

// Why a pod is pending, as its condition says.
func (server *apiServer) message(name string) string {
	server.lock.Lock()
	defer server.lock.Unlock()
	for _, condition := range server.pods[name].Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			return condition.Message
		}
	}
	return ""
}

// The lock is held.
func (server *apiServer) note(resource, kind string, object metav1.Object) {
	server.version++
	object.SetResourceVersion(strconv.Itoa(server.version))
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	server.history = append(server.history, change{server.version, resource, kind, text})
	server.changed.Broadcast()
}

func (server *apiServer) answer(writer http.ResponseWriter, request *http.Request) {
	writer.Header().Set("Content-Type", "application/json")
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	resource := parts[len(parts)-1]
	switch {
	case request.Method == http.MethodGet && request.URL.Query().Get("watch") != "":
		server.watch(writer, request, resource)
	case request.Method == http.MethodGet && len(parts) == 6 && parts[4] == "pods":
		server.lock.Lock()
		defer server.lock.Unlock()
		if pod := server.pods[parts[5]]; pod != nil {
			respond(writer, http.StatusOK, pod)
		} else {
			refuse(writer, http.StatusNotFound, "NotFound")
		}
	case request.Method == http.MethodGet:
		server.list(writer, resource, strings.Contains(request.UserAgent(), "httpx"))
	case request.Method == http.MethodPost && resource == "binding":
		server.bind(writer, request, parts[5])
	case request.Method == http.MethodPatch && len(parts) == 7 && resource == "status":
		server.setStatus(writer, request, parts[5])
	case request.Method == http.MethodDelete && len(parts) == 6 && parts[4] == "pods":
		server.deletePod(parts[5])
		respond(writer, http.StatusOK, metav1.Status{Status: "Success"})
	default: // events and the like
		body, _ := io.ReadAll(request.Body)
		if resource == "events" && parts[0] == "api" {
			server.lock.Lock()
			var event corev1.Event
			if json.Unmarshal(body, &event) == nil {
				server.events = append(server.events, event)
			}
			server.lock.Unlock()
		}
		writer.WriteHeader(http.StatusCreated)
		_, _ = writer.Write(body)
	}
}

func (server *apiServer) list(writer http.ResponseWriter, resource string, ofService bool) {
	server.lock.Lock()
	items := []any{}
	switch resource {
	case "nodes":
		for _, name := range sorted(server.nodes) {
			items = append(items, server.nodes[name])
		}
	case "pods":
		for _, name := range sorted(server.pods) {
			items = append(items, server.pods[name])
		}
	}
	metadata := map[string]string{"resourceVersion": strconv.Itoa(server.version)}
	text, err := json.Marshal(map[string]any{"metadata": metadata, "items": items})
	delay := server.listDelay
	server.lock.Unlock()
	if err != nil {
		panic(err)
	}
	if ofService {
		time.Sleep(delay)
	}
	_, _ = writer.Write(text)
}

func (server *apiServer) watch(writer http.ResponseWriter, request *http.Request, resource string) {
	since, _ := strconv.Atoi(request.URL.Query().Get("resourceVersion"))
	server.lock.Lock()
	defer server.lock.Unlock()
	if since < server.forgotten {
		refuse(writer, http.StatusGone, "Expired")
		return
	}
	cuts := server.cuts
	go func() {
		<-request.Context().Done()
		server.changed.Broadcast()
	}()
	writer.WriteHeader(http.StatusOK)
	writer.(http.Flusher).Flush()
	for request.Context().Err() == nil && server.cuts == cuts {
		for _, one := range server.history {
			if one.version > since && one.resource == resource {
				fmt.Fprintf(writer, `{"type":%q,"object":%s}`+"\n", one.kind, one.object)
			}
		}
		since = server.version
		writer.(http.Flusher).Flush()
		server.changed.Wait()
	}
}

func (server *apiServer) bind(writer http.ResponseWriter, request *http.Request, name string) {
	var binding corev1.Binding
	if json.NewDecoder(request.Body).Decode(&binding) != nil {
		refuse(writer, http.StatusBadRequest, "BadRequest")
		return
	}
	server.lock.Lock()
	defer server.lock.Unlock()
	pod := server.pods[name]
	switch {
	case pod == nil:
		refuse(writer, http.StatusNotFound, "NotFound")
	case pod.Spec.NodeName != "" || pod.UID != binding.UID:
		refuse(writer, http.StatusConflict, "Conflict")
	default:
		bound := pod.DeepCopy()
		bound.Spec.NodeName = binding.Target.Name
		bound.Status.Phase = corev1.PodRunning
		server.pods[name] = bound
		server.note("pods", "MODIFIED", bound)
		respond(writer, http.StatusCreated, metav1.Status{Status: "Success"})
	}
}

func (server *apiServer) setStatus(writer http.ResponseWriter, request *http.Request, name string) {
	var patch struct {
		Status struct {
			Conditions []corev1.PodCondition `json:"conditions"`
		} `json:"status"`
	}
	_ = json.NewDecoder(request.Body).Decode(&patch)
	server.lock.Lock()
	defer server.lock.Unlock()
	pod := server.pods[name]
	if pod == nil {
		refuse(writer, http.StatusNotFound, "NotFound")
		return
	}
	changed := pod.DeepCopy()
	for _, condition := range patch.Status.Conditions {
		kept := []corev1.PodCondition{condition}
		for _, other := range changed.Status.Conditions {
			if other.Type != condition.Type {
				kept = append(kept, other)
			}
		}
		changed.Status.Conditions = kept
	}
	server.pods[name] = changed
	server.note("pods", "MODIFIED", changed)
	respond(writer, http.StatusOK, changed)
}

func respond(writer http.ResponseWriter, status int, value any) {
	writer.WriteHeader(status)
	_ = json.NewEncoder(writer).Encode(value)
}

func refuse(writer http.ResponseWriter, status int, reason string) {
	respond(writer, status, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   "Failure", Reason: metav1.StatusReason(reason), Code: int32(status), Message: reason,
	})
}

func sorted[V any](named map[string]V) []string {
	names := make([]string, 0, len(named))
	for name := range named {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
