package permission

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
	users := []User{watcher()}
	for _, service := range topology.Services() {
		users = append(users, consumer(service.Name))
	}
	for _, service := range topology.Readers() {
		users = append(users, reader(service.Name))
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

func watcher() User {
	changes, sync, results, letters := topology.Changes, topology.Sync, topology.Results, topology.DeadLetters
	return User{
		Service: topology.Watcher,
		Publish: []Right{
			inspect(),
			may("The watcher alone makes streams, and gives them their configuration back.", slices.Concat(
				each(streamAPI+"CREATE.", topology.Streams()...), each(streamAPI+"UPDATE.", topology.Streams()...))...),
			may("What is published: changes, barriers, and markers.", "entail.changes.>", "entail.objects.>", "entail.barrier.*", "entail.sync.>"),
			may("Does the bus take anything?", topology.PulseSubject(topology.Watcher)),
			may("A sweep reads what the stream holds.", append(read(changes, "entail.changes.>"), read(changes, "entail.objects.>")...)...),
			may("Changes of all kinds are audited.", consumerAPI+"CREATE."+changes+".*"),
			may("One message is read: a change, a marker, a result, a dead letter.",
				direct+changes, direct+changes+".entail.changes.>", direct+changes+".entail.objects.>",
				direct+sync+".entail.sync.>", direct+results+".entail.results.>", direct+letters),
			may("What is missing is missing by the word of the leader.", each(streamAPI+"MSG.GET.", changes, sync)...),
			may("A marker is taken back, and with a kind that is registered no more its objects.", streamAPI+"PURGE."+sync, streamAPI+"PURGE."+changes),
			may("What is no change, and a dead letter that was dealt with, are taken away.", each(streamAPI+"MSG.DELETE.", changes, letters)...),
			may("How far has each service come?", each(consumerAPI+"INFO."+changes+".", durables()...)...),
		},
		Deny: []Right{foreign("")},
	}
}

func reader(service string) User {
	return User{Service: service, Publish: fed(service), Deny: []Right{foreign(service)}}
}

// fed returns the rights that a view needs.
func fed(service string) []Right {
	changes, sync := topology.Changes, topology.Sync
	return []Right{
		inspect(),
		may("A view is fed from changes and markers.", append(read(changes, "entail.changes.>"), read(sync, "entail.sync.>")...)...),
		may("Of several kinds at once; also how a durable is made.", each(consumerAPI+"CREATE.", changes+".*", sync+".*")...),
		may("How far a view has to read, and whether NATS accepts messages.", topology.EndSubject(service), topology.PulseSubject(service)),
	}
}

func consumer(service string) User {
	changes, results := topology.Changes, topology.Results
	u := User{
		Service: service,
		Publish: append(fed(service),
			may("The durable is looked up, its turn given up, its messages are settled.",
				consumerAPI+"INFO."+changes+"."+service, consumerAPI+"UNPIN."+changes+"."+service, "$JS.ACK."+changes+"."+service+".>"),
			may("What the service says of itself.", topology.WakeSubject(service), topology.ResultsFilter(service), topology.DeadLettersFilter(service)),
			may("Whose turn it is.", topology.TurnSubject(service), direct+changes+"."+topology.TurnSubject(service)),
			may("Is what it said still there?", direct+results+"."+topology.ResultsFilter(service)),
		),
		Deny: []Right{foreign(service)},
	}
	if service == topology.StoreSync || service == topology.TupleSync {
		u.Publish = append(u.Publish, may("Caches are told what changed in a store.", "entail.announce.*"))
	}
	return u
}

func inspect() Right {
	return may("Streams are looked at before anything is done with them.", each(streamAPI+"INFO.", topology.Streams()...)...)
}

// read returns the subjects for reading a stream with an ephemeral consumer, whose name is random.
func read(stream, filter string) []string {
	return []string{consumerAPI + "CREATE." + stream + ".*." + filter, consumerAPI + "MSG.NEXT." + stream + ".*", consumerAPI + "DELETE." + stream + ".*"}
}

// foreign denies durable consumers: the wildcard for a random name also matches them. A service may create and read its
// own, but not delete it.
func foreign(service string) Right {
	right := Right{Why: "Durables of others; none is ever deleted."}
	for _, durable := range durables() {
		name := topology.Changes + "." + durable
		right.Subjects = append(right.Subjects, consumerAPI+"DELETE."+name)
		if durable != service {
			right.Subjects = append(right.Subjects, consumerAPI+"CREATE."+name, consumerAPI+"CREATE."+name+".>", consumerAPI+"MSG.NEXT."+name)
		}
	}
	return right
}

func durables() []string {
	var names []string
	for _, service := range topology.Services() {
		names = append(names, service.Name)
	}
	return names
}
