package checker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Writes counts writes by operation. The counts come from the servers' own metrics.
type Writes map[string]float64

// Since returns an error that lists the writes after before, or nil.
func (w Writes) Since(before Writes) error {
	var more []string
	for _, what := range slices.Sorted(maps.Keys(w)) {
		if n := w[what] - before[what]; n > 0 {
			more = append(more, fmt.Sprintf("%s ×%.0f", what, n))
		}
	}
	if len(more) == 0 {
		return nil
	}
	return errors.New(strings.Join(more, ", "))
}

// Counter reads the write counters of the backends.
type Counter struct {
	openFGA string
	kube    *kubernetes.Clientset
}

// NewCounter returns a counter for an API server and an OpenFGA with metrics at the given URL.
func NewCounter(openFGA string, kube *rest.Config) (*Counter, error) {
	client, err := kubernetes.NewForConfig(kube)
	if err != nil {
		return nil, fmt.Errorf("connecting the counter: %w", err)
	}
	return &Counter{openFGA: openFGA, kube: client}, nil
}

// Read reads the counters of both.
func (c *Counter) Read(ctx context.Context) (Writes, error) {
	kube, err := c.kube.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of the API server: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.openFGA, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of OpenFGA: %w", err)
	}
	defer response.Body.Close()
	all := Writes{}
	all.read(strings.NewReader(string(kube)), "apiserver_request_total", kubeWrite)
	all.read(response.Body, "grpc_server_handled_total", openFGAWrite)
	return all, nil
}

var label = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)

// read adds up the samples of a counter that are writes. The text is in Prometheus' format.
func (w Writes) read(from io.Reader, counter string, write func(map[string]string) string) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		line := lines.Text()
		if !strings.HasPrefix(line, counter+"{") {
			continue
		}
		labels := map[string]string{}
		for _, l := range label.FindAllStringSubmatch(line, -1) {
			labels[l[1]] = l[2]
		}
		value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if what := write(labels); what != "" && err == nil {
			w[what] += value
		}
	}
}

// kubeWrite returns the operation of a sample, or an empty text for requests that are no change of state. These are
// leader election, Events, reviews, which use POST, and conflicts.
func kubeWrite(l map[string]string) string {
	if slices.Contains([]string{"leases", "events"}, l["resource"]) || strings.HasSuffix(l["resource"], "reviews") || l["code"] == "409" {
		return ""
	}
	if !slices.Contains([]string{"POST", "PUT", "PATCH", "APPLY", "DELETE"}, l["verb"]) {
		return ""
	}
	return strings.TrimSuffix(l["verb"]+" "+l["resource"]+"/"+l["subresource"], "/") + " " + l["code"]
}

func openFGAWrite(l map[string]string) string {
	if slices.Contains([]string{"Write", "WriteAuthorizationModel", "CreateStore", "UpdateStore", "DeleteStore"}, l["grpc_method"]) {
		return "OpenFGA " + l["grpc_method"]
	}
	return ""
}
