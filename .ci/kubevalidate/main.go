// Command kubevalidate reads Kubernetes manifests, YAML documents on standard
// input, and says what an API server would: it decodes strictly, sets defaults,
// applies the server's own validation, and asks whether pods may run under Pod
// Security "restricted". It also repeats the server's warnings. Status 0: all is
// well. On standard output are the documents as JSON, one a line.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	autoscalingvalidation "k8s.io/kubernetes/pkg/apis/autoscaling/validation"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	batchvalidation "k8s.io/kubernetes/pkg/apis/batch/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/networking"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	networkingvalidation "k8s.io/kubernetes/pkg/apis/networking/validation"
	"k8s.io/kubernetes/pkg/apis/policy"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	policyvalidation "k8s.io/kubernetes/pkg/apis/policy/validation"
	psa "k8s.io/pod-security-admission/api"
	psapolicy "k8s.io/pod-security-admission/policy"
	strictyaml "sigs.k8s.io/yaml"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	documents := yaml.NewDocumentDecoder(io.NopCloser(in))
	var errs []error
	for n := 0; ; n++ {
		buf := make([]byte, 4<<20)
		size, err := documents.Read(buf)
		if errors.Is(err, io.EOF) {
			if n == 0 {
				errs = append(errs, errors.New("no document on standard input"))
			}
			return errors.Join(errs...)
		}
		if err != nil {
			return err
		}
		json, err := strictyaml.YAMLToJSONStrict(buf[:size])
		if err != nil {
			return fmt.Errorf("document %d: %w", n+1, err)
		}
		if string(json) == "null" { // only comments
			continue
		}
		if _, err := fmt.Fprintf(out, "%s\n", json); err != nil {
			return err
		}
		errs = append(errs, document(buf[:size]))
	}
}

// document checks one object.
func document(text []byte) error {
	var kind metav1.PartialObjectMetadata
	if err := strictyaml.Unmarshal(text, &kind); err != nil {
		return err
	}
	name := kind.Kind + " " + kind.Name
	if kind.GroupVersionKind().Group == "monitoring.coreos.com" {
		return wrap(name, serviceMonitor(text))
	}
	decoder := serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	object, _, err := decoder.Decode(text, nil, nil)
	if err != nil {
		return wrap(name, err)
	}
	legacyscheme.Scheme.Default(object)
	if m, ok := object.(metav1.Object); ok && m.GetNamespace() == "" {
		m.SetNamespace("default")
	}
	return wrap(name, validate(object))
}

func wrap(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}

// validate applies what the API server's strategies for a create apply.
func validate(object runtime.Object) error {
	switch o := object.(type) {
	case *appsv1.Deployment:
		in := convert(o, &apps.Deployment{})
		opts := podutil.GetValidationOptionsFromPodTemplate(&in.Spec.Template, nil)
		return errors.Join(join(appsvalidation.ValidateDeployment(in, opts)), template(&o.Spec.Template, &in.Spec.Template))
	case *batchv1.Job:
		in := convert(o, &batch.Job{})
		// What the server generates before it validates.
		in.UID, in.Spec.Selector = "u", &metav1.LabelSelector{MatchLabels: map[string]string{batch.ControllerUidLabel: "u"}}
		for key, value := range map[string]string{
			batch.ControllerUidLabel: "u", batch.LegacyControllerUidLabel: "u",
			batch.JobNameLabel: in.Name, batch.LegacyJobNameLabel: in.Name,
		} {
			in.Spec.Template.Labels[key] = value
		}
		opts := batchvalidation.JobValidationOptions{PodValidationOptions: podutil.GetValidationOptionsFromPodTemplate(&in.Spec.Template, nil), RequirePrefixedLabels: true}
		return errors.Join(join(batchvalidation.ValidateJob(in, opts)), template(&o.Spec.Template, &in.Spec.Template))
	case *corev1.Service:
		in := convert(o, &core.Service{})
		if in.Spec.ClusterIP != "" { // as the server does before it validates
			in.Spec.ClusterIPs = []string{in.Spec.ClusterIP}
		}
		return join(corevalidation.ValidateServiceCreate(in))
	case *corev1.ConfigMap:
		return join(corevalidation.ValidateConfigMap(convert(o, &core.ConfigMap{})))
	case *policyv1.PodDisruptionBudget:
		return join(policyvalidation.ValidatePodDisruptionBudget(convert(o, &policy.PodDisruptionBudget{}), policyvalidation.PodDisruptionBudgetValidationOptions{}))
	case *autoscalingv2.HorizontalPodAutoscaler:
		opts := autoscalingvalidation.HorizontalPodAutoscalerSpecValidationOptions{MinReplicasLowerBound: 1}
		return join(autoscalingvalidation.ValidateHorizontalPodAutoscaler(convert(o, &autoscaling.HorizontalPodAutoscaler{}), opts))
	case *networkingv1.NetworkPolicy:
		return join(networkingvalidation.ValidateNetworkPolicy(convert(o, &networking.NetworkPolicy{}), networkingvalidation.NetworkPolicyValidationOptions{}))
	}
	return fmt.Errorf("a %T: add its validation to this program", object)
}

// convert returns in as the server's own version, in the shape of out.
func convert[T any](in any, out T) T {
	if err := legacyscheme.Scheme.Convert(in, out, nil); err != nil {
		panic(err) // both are registered types of one kind
	}
	return out
}

func join(list field.ErrorList) error { return list.ToAggregate() }

// template checks what a pod of it would meet: Pod Security, and warnings.
func template(t *corev1.PodTemplateSpec, in *core.PodTemplateSpec) error {
	evaluator, err := psapolicy.NewEvaluator(psapolicy.DefaultChecks())
	if err != nil {
		return err
	}
	var errs []error
	level := psa.LevelVersion{Level: psa.LevelRestricted, Version: psa.LatestVersion()}
	if r := psapolicy.AggregateCheckResults(evaluator.EvaluatePod(level, &t.ObjectMeta, &t.Spec)); !r.Allowed {
		errs = append(errs, fmt.Errorf("not allowed by Pod Security restricted: %s", r.ForbiddenDetail()))
	}
	for _, w := range podutil.GetWarningsForPodTemplate(context.Background(), field.NewPath("spec", "template"), in, nil) {
		errs = append(errs, fmt.Errorf("warning: %s", w))
	}
	return errors.Join(errs...)
}

// serviceMonitor decodes the part of the Prometheus operator's kind that we use.
func serviceMonitor(text []byte) error {
	var s struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Selector  metav1.LabelSelector `json:"selector"`
			Endpoints []struct {
				Port     string `json:"port"`
				Interval string `json:"interval"`
			} `json:"endpoints"`
		} `json:"spec"`
	}
	return strictyaml.UnmarshalStrict(text, &s)
}
