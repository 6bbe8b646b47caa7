//go:build etcd

package kubernetes

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	apiservertesting "k8s.io/kubernetes/cmd/kube-apiserver/app/testing"
)

const (
	manifests = "../../deploy/kubernetes"
	namespace = "nf-placer" // as the manifests have it
)

// TestSchedulerWithEtcd is TestScheduler with a real API server, which stores in etcd. The service and kube-scheduler
// have the accounts of the manifests, and no more rights than those.
func TestSchedulerWithEtcd(t *testing.T) {
	goThroughLife(t, newRealCluster(t), true)
}

// A cluster with a real API server.
type realCluster struct {
	t         *testing.T
	client    clientset.Interface
	service   *httptest.Server
	scheduler *httptest.Server
	listDelay atomic.Int64 // of the answers to lists of the service, in nanoseconds
}

func newRealCluster(t *testing.T) *realCluster {
	t.Helper()
	storage := storagebackend.NewDefaultConfig("/registry", nil)
	storage.Transport.ServerList = []string{startEtcd(t)}
	// without a controller manager nobody makes service accounts for pods, and nobody removes the taint of a new node
	flags := []string{"--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition"}
	server, err := apiservertesting.StartTestServer(t, nil, flags, storage)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.TearDownFn)
	one := &realCluster{t: t, client: clientset.NewForConfigOrDie(server.ClientConfig)}
	for _, file := range []string{"namespace.yaml", "service-account.yaml"} {
		one.apply(filepath.Join(manifests, file))
	}
	one.service = one.proxyFor("placer", server.ClientConfig, &one.listDelay)
	one.scheduler = one.proxyFor("scheduler", server.ClientConfig, &atomic.Int64{})
	return one
}

// etcd in a folder of its own; returns its address.
func startEtcd(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("etcd")
	if err != nil {
		t.Skip("there is no etcd")
	}
	address := fmt.Sprintf("http://127.0.0.1:%d", freePort(t))
	peers := fmt.Sprintf("http://127.0.0.1:%d", freePort(t))
	process := exec.Command(path, "--data-dir", t.TempDir(), "--listen-client-urls", address,
		"--advertise-client-urls", address, "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
		"--initial-cluster", "default="+peers)
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Process.Kill(); _ = process.Wait() })
	eventually(t, "etcd is healthy", 60*time.Second, func() bool {
		answer, err := http.Get(address + "/health")
		if err == nil {
			answer.Body.Close()
		}
		return err == nil && answer.StatusCode == http.StatusOK
	})
	return address
}

// Make the objects of a file, each of which may be one of several in it.
func (one *realCluster) apply(path string) {
	one.t.Helper()
	text, err := os.ReadFile(path)
	one.check(err)
	ctx, options := context.Background(), metav1.CreateOptions{}
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
		one.check(err)
		switch made := object.(type) {
		case *corev1.Namespace:
			_, err = one.client.CoreV1().Namespaces().Create(ctx, made, options)
		case *corev1.ServiceAccount:
			_, err = one.client.CoreV1().ServiceAccounts(namespace).Create(ctx, made, options)
		case *rbacv1.ClusterRole:
			_, err = one.client.RbacV1().ClusterRoles().Create(ctx, made, options)
		case *rbacv1.ClusterRoleBinding:
			_, err = one.client.RbacV1().ClusterRoleBindings().Create(ctx, made, options)
		default:
			one.t.Fatalf("%s: unexpected %T", path, object)
		}
		one.check(err)
	}
}

// A proxy to the API server that acts as a service account, and delays the answers to lists.
func (one *realCluster) proxyFor(account string, config *rest.Config, delay *atomic.Int64) *httptest.Server {
	one.t.Helper()
	request := &authenticationv1.TokenRequest{}
	accounts := one.client.CoreV1().ServiceAccounts(namespace)
	token, err := accounts.CreateToken(context.Background(), account, request, metav1.CreateOptions{})
	one.check(err)
	target, err := url.Parse(config.Host)
	one.check(err)
	forward := &httputil.ReverseProxy{
		FlushInterval: -1, // a watch has to come at once
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(target)
			request.Out.Header.Set("Authorization", "Bearer "+token.Status.Token)
		},
		ModifyResponse: func(answer *http.Response) error {
			query := answer.Request.URL.Query()
			if query.Has("limit") && !query.Has("watch") {
				time.Sleep(time.Duration(delay.Load()))
			}
			return nil
		},
	}
	server := httptest.NewServer(forward)
	one.t.Cleanup(server.CloseClientConnections)
	return server
}

func (one *realCluster) serviceAddress() string { return one.service.URL }

func (one *realCluster) schedulerAddress() string { return one.scheduler.URL }

func (one *realCluster) addNode(node *corev1.Node) {
	nodes := one.client.CoreV1().Nodes()
	made, err := nodes.Create(context.Background(), node, metav1.CreateOptions{})
	one.check(err)
	made.Status = node.Status
	_, err = nodes.UpdateStatus(context.Background(), made, metav1.UpdateOptions{})
	one.check(err)
}

func (one *realCluster) addPod(pod *corev1.Pod) {
	_, err := one.client.CoreV1().Pods("default").Create(context.Background(), pod, metav1.CreateOptions{})
	one.check(err)
}

func (one *realCluster) deletePod(name string) {
	one.check(one.client.CoreV1().Pods("default").Delete(context.Background(), name, *metav1.NewDeleteOptions(0)))
}

func (one *realCluster) label(name, model string) {
	nodes := one.client.CoreV1().Nodes()
	found, err := nodes.Get(context.Background(), name, metav1.GetOptions{})
	one.check(err)
	found.Labels = labels(model)
	_, err = nodes.Update(context.Background(), found, metav1.UpdateOptions{})
	one.check(err)
}

func (one *realCluster) run(pod *corev1.Pod, node string) {
	pod.Spec.NodeName = node
	one.addPod(pod)
}

func (one *realCluster) delayLists(by time.Duration) { one.listDelay.Store(int64(by)) }

func (one *realCluster) cutWatches() {
	one.service.CloseClientConnections()
	one.scheduler.CloseClientConnections()
}

func (one *realCluster) placed() map[string]string {
	found := map[string]string{}
	for _, pod := range one.pods() {
		found[pod.Name] = pod.Spec.NodeName
	}
	return found
}

func (one *realCluster) message(name string) string {
	for _, pod := range one.pods() {
		for _, condition := range pod.Status.Conditions {
			if pod.Name == name && condition.Type == corev1.PodScheduled {
				return condition.Message
			}
		}
	}
	return ""
}

func (one *realCluster) pods() []corev1.Pod {
	list, err := one.client.CoreV1().Pods("default").List(context.Background(), metav1.ListOptions{})
	one.check(err)
	return list.Items
}

func (one *realCluster) check(err error) {
	one.t.Helper()
	if err != nil {
		one.t.Fatal(err)
	}
}
