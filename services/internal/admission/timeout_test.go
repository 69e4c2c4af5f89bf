package admission

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// A write waits for a hanging webhook twice: as authorizer, and as admission webhook. The documentation names both bounds.
func TestWriteWaitsForHangingWebhookAsDocumented(t *testing.T) {
	const deploy, page = "../../../deploy/authorization/authorization.yaml", "../../../docs/operate/admission.md"
	config, err := os.ReadFile(deploy)
	if err != nil {
		t.Fatal(err)
	}
	timeout := regexp.MustCompile(`(?m)^ +timeout: (\d+)s$`).FindSubmatch(config)
	if timeout == nil {
		t.Fatalf("%s has no timeout in seconds", deploy)
	}
	authorizer, err := strconv.Atoi(string(timeout[1]))
	if err != nil {
		t.Fatal(err)
	}
	var w admissionregistrationv1.ValidatingWebhook
	setWebhookDefaults(&w)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf("| %d s (`timeout` in", authorizer), fmt.Sprintf("| %d s (`timeoutSeconds`)", *w.TimeoutSeconds),
		fmt.Sprintf("after at most %d s, and stores nothing", authorizer+int(*w.TimeoutSeconds)),
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %q", page, want)
		}
	}
	if sum := time.Duration(authorizer)*time.Second + webhookTimeout; sum > 8*time.Second {
		t.Errorf("a write waits up to %s", sum)
	}
}
