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
func Users() []User {
	users := []User{watcherUser()}
	for _, service := range topology.Services() {
		users = append(users, consumerUser(service.Name))
	}
	for _, service := range topology.Readers() {
		users = append(users, readerUser(service.Name))
	}
	return users
}

// Names lists the names of all users.
func Names() []string {
	names := []string{Admin, System}
	for _, user := range Users() {
		names = append(names, user.Service)
	}
	return names
}

func watcherUser() User {
	changes, sync, results, letters := topology.Changes, topology.Sync, topology.Results, topology.DeadLetters
	return User{
		Service: topology.Watcher,
		Publish: []Right{
			inspectRight(),
			subjectsRight("The watcher alone creates streams and restores their configuration.", slices.Concat(
				prefixNames(streamAPI+"CREATE.", topology.Streams()...), prefixNames(streamAPI+"UPDATE.", topology.Streams()...))...),
			subjectsRight("The watcher publishes changes, barriers and snapshot markers.", "entail.changes.>", "entail.objects.>", "entail.barrier.*",
				"entail.sync.>"),
			subjectsRight("The watcher tests that NATS accepts messages.", topology.PulseSubject(topology.Watcher)),
			subjectsRight("A sweep reads the content of the stream.",
				append(readSubjects(changes, "entail.changes.>"), readSubjects(changes, "entail.objects.>")...)...),
			subjectsRight("The watcher audits changes of all kinds.", consumerAPI+"CREATE."+changes+".*"),
			subjectsRight("The watcher reads single messages: changes, markers, results and dead letters.",
				direct+changes, direct+changes+".entail.changes.>", direct+changes+".entail.objects.>",
				direct+sync+".entail.sync.>", direct+results+".entail.results.>", direct+letters),
			subjectsRight("The stream's leader confirms that a message is missing. Other replicas may lag.",
				prefixNames(streamAPI+"MSG.GET.", changes, sync)...),
			subjectsRight("The watcher removes markers, and the objects of kinds that are no longer registered.", streamAPI+"PURGE."+sync,
				streamAPI+"PURGE."+changes),
			subjectsRight("The watcher deletes messages that are no changes, and settled dead letters.",
				prefixNames(streamAPI+"MSG.DELETE.", changes, letters)...),
			subjectsRight("The watcher reads the progress of each service.", prefixNames(consumerAPI+"INFO."+changes+".", durableNames()...)...),
		},
		Deny: []Right{denyConsumers("")},
	}
}

func readerUser(service string) User {
	return User{Service: service, Publish: viewRights(service), Deny: []Right{denyConsumers(service)}}
}

// viewRights returns the rights that a view needs.
func viewRights(service string) []Right {
	changes, sync := topology.Changes, topology.Sync
	return []Right{
		inspectRight(),
		subjectsRight("An informer reads changes and markers.", append(readSubjects(changes, "entail.changes.>"), readSubjects(sync, "entail.sync.>")...)...),
		subjectsRight("An informer reads several kinds at once. A service creates its durable consumer.",
			prefixNames(consumerAPI+"CREATE.", changes+".*", sync+".*")...),
		subjectsRight("An informer marks the end of the stream. A service tests that NATS accepts messages.",
			topology.EndSubject(service), topology.PulseSubject(service)),
	}
}

func consumerUser(service string) User {
	changes, results := topology.Changes, topology.Results
	u := User{
		Service: service,
		Publish: append(viewRights(service),
			subjectsRight("The service reads its durable consumer, settles its messages and ends its term.",
				consumerAPI+"INFO."+changes+"."+service, consumerAPI+"UNPIN."+changes+"."+service, "$JS.ACK."+changes+"."+service+".>"),
			subjectsRight("The service publishes wake-ups, results and dead letters.", topology.WakeSubject(service), topology.ResultsFilter(service),
				topology.DeadLettersFilter(service)),
			subjectsRight("Replicas elect a leader.", topology.TurnSubject(service), direct+changes+"."+topology.TurnSubject(service)),
			subjectsRight("The service reads its own results.", direct+results+"."+topology.ResultsFilter(service)),
		),
		Deny: []Right{denyConsumers(service)},
	}
	return u
}

func inspectRight() Right {
	return subjectsRight("The service reads the state of streams.", prefixNames(streamAPI+"INFO.", topology.Streams()...)...)
}

// readSubjects returns the subjects for reading a stream with an ephemeral consumer, whose name is random.
func readSubjects(stream, filter string) []string {
	return []string{consumerAPI + "CREATE." + stream + ".*." + filter, consumerAPI + "MSG.NEXT." + stream + ".*", consumerAPI + "DELETE." + stream + ".*"}
}

// denyConsumers denies durable consumers: the wildcard for a random name also matches them. A service may create and read its
// own, but not delete it.
func denyConsumers(service string) Right {
	right := Right{Why: "The user never deletes a durable consumer and never uses one of another service."}
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
	for _, service := range topology.Services() {
		names = append(names, service.Name)
	}
	return names
}
