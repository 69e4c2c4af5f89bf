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
			subjectsRight("The watcher alone makes streams, and gives them their configuration back.", slices.Concat(
				prefixNames(streamAPI+"CREATE.", topology.Streams()...), prefixNames(streamAPI+"UPDATE.", topology.Streams()...))...),
			subjectsRight("What is published: changes, barriers, and markers.", "entail.changes.>", "entail.objects.>", "entail.barrier.*", "entail.sync.>"),
			subjectsRight("Does the bus take anything?", topology.PulseSubject(topology.Watcher)),
			subjectsRight("A sweep reads what the stream holds.", append(readSubjects(changes, "entail.changes.>"), readSubjects(changes, "entail.objects.>")...)...),
			subjectsRight("Changes of all kinds are audited.", consumerAPI+"CREATE."+changes+".*"),
			subjectsRight("One message is read: a change, a marker, a result, a dead letter.",
				direct+changes, direct+changes+".entail.changes.>", direct+changes+".entail.objects.>",
				direct+sync+".entail.sync.>", direct+results+".entail.results.>", direct+letters),
			subjectsRight("What is missing is missing by the word of the leader.", prefixNames(streamAPI+"MSG.GET.", changes, sync)...),
			subjectsRight("A marker is taken back, and with a kind that is registered no more its objects.", streamAPI+"PURGE."+sync,
				streamAPI+"PURGE."+changes),
			subjectsRight("What is no change, and a dead letter that was dealt with, are taken away.",
				prefixNames(streamAPI+"MSG.DELETE.", changes, letters)...),
			subjectsRight("How far has each service come?", prefixNames(consumerAPI+"INFO."+changes+".", durableNames()...)...),
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
		subjectsRight("A view is fed from changes and markers.", append(readSubjects(changes, "entail.changes.>"), readSubjects(sync, "entail.sync.>")...)...),
		subjectsRight("Of several kinds at once; also how a durable is made.", prefixNames(consumerAPI+"CREATE.", changes+".*", sync+".*")...),
		subjectsRight("How far a view has to read, and whether NATS accepts messages.", topology.EndSubject(service), topology.PulseSubject(service)),
	}
}

func consumerUser(service string) User {
	changes, results := topology.Changes, topology.Results
	u := User{
		Service: service,
		Publish: append(viewRights(service),
			subjectsRight("The durable is looked up, its turn given up, its messages are settled.",
				consumerAPI+"INFO."+changes+"."+service, consumerAPI+"UNPIN."+changes+"."+service, "$JS.ACK."+changes+"."+service+".>"),
			subjectsRight("What the service says of itself.", topology.WakeSubject(service), topology.ResultsFilter(service),
				topology.DeadLettersFilter(service)),
			subjectsRight("Whose turn it is.", topology.TurnSubject(service), direct+changes+"."+topology.TurnSubject(service)),
			subjectsRight("Is what it said still there?", direct+results+"."+topology.ResultsFilter(service)),
		),
		Deny: []Right{denyConsumers(service)},
	}
	if service == topology.StoreSync || service == topology.TupleSync {
		u.Publish = append(u.Publish, subjectsRight("Caches are told what changed in a store.", "entail.announce.*"))
	}
	return u
}

func inspectRight() Right {
	return subjectsRight("Streams are looked at before anything is done with them.", prefixNames(streamAPI+"INFO.", topology.Streams()...)...)
}

// readSubjects returns the subjects for reading a stream with an ephemeral consumer, whose name is random.
func readSubjects(stream, filter string) []string {
	return []string{consumerAPI + "CREATE." + stream + ".*." + filter, consumerAPI + "MSG.NEXT." + stream + ".*", consumerAPI + "DELETE." + stream + ".*"}
}

// denyConsumers denies durable consumers: the wildcard for a random name also matches them. A service may create and read its
// own, but not delete it.
func denyConsumers(service string) Right {
	right := Right{Why: "Durables of others; none is ever deleted."}
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
