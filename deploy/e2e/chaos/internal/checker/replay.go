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

// WriteCounts counts writes by operation. The counts come from the servers' own metrics.
type WriteCounts map[string]float64

// WritesSinceErr returns an error that lists the writes after before, or nil.
func (w WriteCounts) WritesSinceErr(before WriteCounts) error {
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

// WriteCounter reads the write counters of the backends.
type WriteCounter struct {
	openFGA string
	kube    *kubernetes.Clientset
}

// NewWriteCounter returns a counter for an API server and an OpenFGA with metrics at the given URL.
func NewWriteCounter(openFGA string, kube *rest.Config) (*WriteCounter, error) {
	client, err := kubernetes.NewForConfig(kube)
	if err != nil {
		return nil, fmt.Errorf("connecting the counter: %w", err)
	}
	return &WriteCounter{openFGA: openFGA, kube: client}, nil
}

// ReadCounts reads the counters of both.
func (c *WriteCounter) ReadCounts(ctx context.Context) (WriteCounts, error) {
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
	all := WriteCounts{}
	all.addSamples(strings.NewReader(string(kube)), "apiserver_request_total", kubeWriteName)
	all.addSamples(response.Body, "grpc_server_handled_total", openFGAWriteName)
	return all, nil
}

var label = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)

// addSamples adds up the samples of a counter that are writes. The text is in Prometheus' format.
func (w WriteCounts) addSamples(from io.Reader, counter string, write func(map[string]string) string) {
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

// kubeWriteName returns the operation of a sample, or an empty text for requests that are no change of state. These are
// leader election, Events, reviews, which use POST, and conflicts.
func kubeWriteName(l map[string]string) string {
	if slices.Contains([]string{"leases", "events"}, l["resource"]) || strings.HasSuffix(l["resource"], "reviews") || l["code"] == "409" {
		return ""
	}
	if !slices.Contains([]string{"POST", "PUT", "PATCH", "APPLY", "DELETE"}, l["verb"]) {
		return ""
	}
	return strings.TrimSuffix(l["verb"]+" "+l["resource"]+"/"+l["subresource"], "/") + " " + l["code"]
}

func openFGAWriteName(l map[string]string) string {
	if slices.Contains([]string{"Write", "WriteAuthorizationModel", "CreateStore", "UpdateStore", "DeleteStore"}, l["grpc_method"]) {
		return "OpenFGA " + l["grpc_method"]
	}
	return ""
}
