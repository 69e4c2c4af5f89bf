package natsauth

import (
	"slices"

	"github.com/entail-dev/entail/services/internal/topology"
)

const (
	streamAPI   = "$JS.API.STREAM."
	consumerAPI = "$JS.API.CONSUMER."
	direct      = "$JS.API.DIRECT.GET."
)

// Users returns the users of all services.
func Users() []ServiceUser {
	users := []ServiceUser{watcherUser()}
	for _, service := range topology.DurableServices() {
		users = append(users, consumerUser(service.Name))
	}
	for _, service := range topology.ReaderServices() {
		users = append(users, ServiceUser{
			Service: service.Name, Publish: informerRights(service.Name), Deny: []SubjectRight{newDurableDenial(service.Name)},
		})
	}
	return users
}

// UserNames lists the names of all users.
func UserNames() []string {
	names := []string{Admin, System}
	for _, user := range Users() {
		names = append(names, user.Service)
	}
	return names
}

func watcherUser() ServiceUser {
	changes, sync, results, letters := topology.Changes, topology.Sync, topology.Results, topology.DeadLetters
	return ServiceUser{
		Service: topology.Watcher,
		Publish: []SubjectRight{
			inspectStreamsRight(),
			newSubjectRight("The watcher alone creates streams and restores their configuration.", slices.Concat(
				prefixNames(streamAPI+"CREATE.", topology.StreamNames()...), prefixNames(streamAPI+"UPDATE.", topology.StreamNames()...))...),
			newSubjectRight("The watcher publishes changes, barriers and snapshot markers.", "entail.changes.>", "entail.objects.>", "entail.barrier.*",
				"entail.sync.>"),
			newSubjectRight("The watcher tests that NATS accepts messages.", topology.ProbeSubject(topology.Watcher)),
			newSubjectRight("A sweep reads the content of the stream.",
				append(readStreamSubjects(changes, "entail.changes.>"), readStreamSubjects(changes, "entail.objects.>")...)...),
			newSubjectRight("The watcher audits changes of all kinds.", consumerAPI+"CREATE."+changes+".*"),
			newSubjectRight("The watcher reads single messages: changes, markers, results and dead letters.",
				direct+changes, direct+changes+".entail.changes.>", direct+changes+".entail.objects.>",
				direct+sync+".entail.sync.>", direct+results+".entail.results.>", direct+letters),
			newSubjectRight("The stream's leader confirms that a message is missing. Other replicas may lag.",
				prefixNames(streamAPI+"MSG.GET.", changes, sync)...),
			newSubjectRight("The watcher removes markers, and the objects of kinds that are no longer registered.", streamAPI+"PURGE."+sync,
				streamAPI+"PURGE."+changes),
			newSubjectRight("The watcher deletes messages that are no changes, and settled dead letters.",
				prefixNames(streamAPI+"MSG.DELETE.", changes, letters)...),
			newSubjectRight("The watcher reads the progress of each service.", prefixNames(consumerAPI+"INFO."+changes+".", durableNames()...)...),
		},
		Deny: []SubjectRight{newDurableDenial("")},
	}
}

// informerRights returns the rights that an informer needs.
func informerRights(service string) []SubjectRight {
	changes, sync := topology.Changes, topology.Sync
	return []SubjectRight{
		inspectStreamsRight(),
		newSubjectRight("An informer reads changes and markers.", append(readStreamSubjects(changes, "entail.changes.>"),
			readStreamSubjects(sync, "entail.sync.>")...)...),
		newSubjectRight("An informer reads several kinds at once. A service creates its durable consumer.",
			prefixNames(consumerAPI+"CREATE.", changes+".*", sync+".*")...),
		newSubjectRight("An informer marks the end of the stream. A service tests that NATS accepts messages.",
			topology.EndMarkSubject(service), topology.ProbeSubject(service)),
	}
}

func consumerUser(service string) ServiceUser {
	changes, results := topology.Changes, topology.Results
	u := ServiceUser{
		Service: service,
		Publish: append(informerRights(service),
			newSubjectRight("The service reads its durable consumer, settles its messages and ends its term.",
				consumerAPI+"INFO."+changes+"."+service, consumerAPI+"UNPIN."+changes+"."+service, "$JS.ACK."+changes+"."+service+".>"),
			newSubjectRight("The service publishes wake-ups, results and dead letters.", topology.ResyncSubject(service), topology.ResultsFilter(service),
				topology.DeadLettersFilter(service)),
			newSubjectRight("Replicas elect a leader.", topology.LeaseSubject(service), direct+changes+"."+topology.LeaseSubject(service)),
			newSubjectRight("The service reads its own results.", direct+results+"."+topology.ResultsFilter(service)),
		),
		Deny: []SubjectRight{newDurableDenial(service)},
	}
	return u
}

func inspectStreamsRight() SubjectRight {
	return newSubjectRight("The service reads the state of streams.", prefixNames(streamAPI+"INFO.", topology.StreamNames()...)...)
}

// readStreamSubjects returns the subjects for reading a stream with an ephemeral consumer, whose name is random.
func readStreamSubjects(stream, filter string) []string {
	return []string{consumerAPI + "CREATE." + stream + ".*." + filter, consumerAPI + "MSG.NEXT." + stream + ".*", consumerAPI + "DELETE." + stream + ".*"}
}

// newDurableDenial denies rights on durable consumers, because the wildcard for random consumer names also matches
// their names. A service may create and read its own durable consumer, but not delete it.
func newDurableDenial(service string) SubjectRight {
	right := SubjectRight{Why: "The user never deletes a durable consumer and never uses one of another service."}
	for _, durable := range durableNames() {
		name := topology.Changes + "." + durable
		right.Subjects = append(right.Subjects, consumerAPI+"DELETE."+name)
		if durable != service {
			right.Subjects = append(right.Subjects, consumerAPI+"CREATE."+name, consumerAPI+"CREATE."+name+".>", consumerAPI+"MSG.NEXT."+name)
		}
	}
	return right
}

func durableNames() []string {
	var names []string
	for _, service := range topology.DurableServices() {
		names = append(names, service.Name)
	}
	return names
}
