package fuzz

// Parser is one function that reads bytes which somebody else chose.
type Parser struct {
	// Func is its folder and name: "spec.ParseEnvelope".
	Func string
	// Targets are the fuzz targets that reach it, folder and name; those outside of fuzz need the inside of their package.
	Targets []string
	// Why says, without a target, why it needs none.
	Why string
}

// Parsers are all of them: the wire, the data paths, HTTP, files, and what tools print. A test finds the functions that look like a
// parser and refuses one that does not stand here.
func Parsers() []Parser { return append(fromPeers(), fromPeople()...) }

// fromPeers are those of what other nodes send.
func fromPeers() []Parser {
	return []Parser{
		// The control link. Layouts, plans and identities come in its messages.
		{Func: "spec.ParseEnvelope", Targets: []string{"spec.FuzzParseEnvelope"}},
		{Func: "spec.ReadEnvelope", Targets: []string{"spec.FuzzReadEnvelope"}},
		{Func: "spec.ReadEnvelopeLimit", Targets: []string{"spec.FuzzReadEnvelope"}},
		{Func: "spec.parsePrefix", Targets: []string{"spec.FuzzParseEnvelope", "spec.FuzzReadEnvelope"}},
		{Func: "spec.cursor.take", Targets: []string{"spec.FuzzParseEnvelope"}},
		{Func: "spec.Incarnation.UnmarshalText", Targets: []string{"fuzz.FuzzTrace"}},
		{Func: "spec.TraceTransfer.UnmarshalText", Targets: []string{"fuzz.FuzzTrace"}},
		{Func: "spec.TraceDomain.UnmarshalText", Targets: []string{"fuzz.FuzzTrace"}},
		{Func: "spec.PlanParts", Targets: []string{"fuzz.FuzzPlan"}},
		{Func: "spec.Layout.Validate", Targets: []string{"fuzz.FuzzPlan"}},
		{Func: "impl/node.getGreeting", Targets: []string{"impl/node.FuzzGreeting"}},
		// Data paths: streams of tcp, the socket and pages of shm, the auxiliary record in a page.
		{Func: "impl/transport/tcp.parseHello", Targets: []string{"impl/transport/tcp.FuzzHello"}},
		{Func: "impl/transport/tcp.challenge", Targets: []string{"impl/transport/tcp.FuzzChallenge"}},
		{Func: "impl/transport/tcp.prove", Targets: []string{"impl/transport/tcp.FuzzChallenge"}},
		{Func: "impl/transport/tcp.parseFrame", Targets: []string{"impl/transport/tcp.FuzzReceiver"}},
		{Func: "impl/transport/tcp.parseEntries", Targets: []string{"impl/transport/tcp.FuzzReceiver"}},
		{Func: "impl/transport/tcp.receiver.take", Targets: []string{"impl/transport/tcp.FuzzReceiver"}},
		{Func: "impl/transport/verbs.parseOpening", Targets: []string{"impl/transport/verbs.FuzzOpening"}},
		{Func: "impl/transport/verbs.parseKeys", Targets: []string{"impl/transport/verbs.FuzzKeys"}},
		{Func: "impl/transport/verbs.getFrame", Targets: []string{"impl/transport/verbs.FuzzFrame"}},
		{Func: "impl/transport/shm.readPacket", Targets: []string{"impl/transport/shm.FuzzPacket"}},
		{Func: "impl/transport/shm.decodeClaim", Targets: []string{"impl/transport/shm.FuzzTable"}},
		{Func: "impl/transport/shm.decodeTable", Targets: []string{"impl/transport/shm.FuzzTable"}},
		{Func: "impl/transport/tcp.single.take", Why: "gives a stream that has proved itself away; its bytes are impl/transport/verbs.getFrame's"},
		{Func: "impl/device/cuda/driver.Context.Load", Why: "hands an image of our own build to the driver"},
		{Func: "impl/device/cuda/driver.Context.ReadSync", Why: "copies bytes and gives them no meaning"},
		{Func: "impl/device.hostStore.ReadPage", Why: "copies bytes of a page and gives them no meaning"},
		{Func: "impl/transport/tcp.source.take", Why: "attaches a stream that has proved itself; prefill reads nothing from it"},
		{Func: "impl/transport/verbs.source.take", Why: "runs a stream that has proved itself: its bytes go to getFrame"},
		{Func: "impl/node.prefillSide.take", Why: "opens a connection: its bytes go to getGreeting and spec.ReadEnvelopeLimit"},
		{Func: "impl/node.getAux", Targets: []string{"impl/node.FuzzAux"}},
		// The machines: what a peer says in which order.
		{Func: "impl/core.DecodeRank.Step", Targets: []string{"fuzz.FuzzHandshake", "fuzz.FuzzSchedule"}},
		{Func: "impl/core.PrefillRank.Step", Targets: []string{"fuzz.FuzzHandshake", "fuzz.FuzzSchedule"}},
	}
}

// fromPeople are those of what clients, gateways and operators send or write.
func fromPeople() []Parser {
	return []Parser{
		// HTTP, from clients and from gateways.
		{Func: "impl/gateway.parseCompletion", Targets: []string{"impl/gateway.FuzzCompletionBody", "fuzz.FuzzGateway"}},
		{Func: "impl/gateway.parseChat", Targets: []string{"impl/gateway.FuzzChatBody", "fuzz.FuzzGateway"}},
		{Func: "impl/gateway.parseFields", Targets: []string{"impl/gateway.FuzzCompletionBody"}},
		{Func: "impl/gateway.fields.take", Targets: []string{"impl/gateway.FuzzCompletionBody"}},
		{Func: "impl/gateway.parsePrompts", Targets: []string{"impl/gateway.FuzzCompletionBody"}},
		{Func: "impl/gateway.parseIDs", Targets: []string{"impl/gateway.FuzzCompletionBody"}},
		{Func: "impl/gateway.parseStop", Targets: []string{"impl/gateway.FuzzCompletionBody"}},
		{Func: "impl/gateway.parseMessages", Targets: []string{"impl/gateway.FuzzChatBody"}},
		{Func: "impl/gateway.parseContent", Targets: []string{"impl/gateway.FuzzChatBody"}},
		{Func: "impl/gateway.ByteTokenizer.Encode", Targets: []string{"fuzz.FuzzTokens"}},
		{Func: "impl/gateway.ByteTokenizer.Chat", Targets: []string{"fuzz.FuzzTokens"}},
		{Func: "impl/workload.Decode", Targets: []string{"fuzz.FuzzTokens"}},
		{Func: "impl/workload.load", Why: "one number of a page whose digest was checked; every bit pattern is one"},
		{Func: "impl/node/api.ParseRequest", Targets: []string{"impl/node/api.FuzzParseRequest"}},
		{Func: "impl/node/api.Tokens.UnmarshalJSON", Targets: []string{"impl/node/api.FuzzParseRequest"}},
		{Func: "impl/node/api.Millis.UnmarshalJSON", Targets: []string{"impl/node/api.FuzzParseRequest"}},
		{Func: "impl/node/api.ParseEvent", Targets: []string{"impl/node/api.FuzzParseEvent", "fuzz.FuzzNodeAnswer"}},
		{Func: "impl/node/api.strictJSON", Targets: []string{"impl/node/api.FuzzParseEvent", "impl/node/api.FuzzParseRequest"}},
		// Files and flags of an operator.
		{Func: "impl/gateway.ParseKeys", Targets: []string{"impl/gateway.FuzzKeysFile"}},
		{Func: "impl/gateway.parseKeyLine", Targets: []string{"impl/gateway.FuzzKeysFile"}},
		{Func: "impl/gateway.keyring.read", Why: "reads the file and gives it to ParseKeys"},
		{Func: "impl/config.Flags.Load", Targets: []string{"fuzz.FuzzConfig"}},
		{Func: "impl/config.Parse", Targets: []string{"fuzz.FuzzConfig"}},
		{Func: "impl/config.parse", Targets: []string{"fuzz.FuzzConfig"}},
		{Func: "impl/config.readFile", Targets: []string{"fuzz.FuzzConfig"}},
		{Func: "impl/sim.ParseScript", Targets: []string{"fuzz.FuzzScenario", "fuzz.FuzzSchedule"}},
		{Func: "impl/sim.ParseResult", Targets: []string{"fuzz.FuzzScenario"}},
		{Func: "impl/sim.ParseSeeds", Targets: []string{"fuzz.FuzzScenario"}},
		{Func: "impl/sim.ParseShard", Targets: []string{"fuzz.FuzzScenario"}},
		// A trace, which anybody may hand in, and what TLC prints, which kvfence explain shows.
		{Func: "impl/trace.parse", Targets: []string{"fuzz.FuzzTrace"}},
		{Func: "impl/tlc/explain.Parse", Targets: []string{"impl/tlc/explain.FuzzParse"}},
		{Func: "impl/tlc/explain.parseValue", Targets: []string{"impl/tlc/explain.FuzzParse"}},
		{Func: "impl/tlc/explain.scanner.take", Targets: []string{"impl/tlc/explain.FuzzParse"}},
		{Func: "impl/tlc/explain.state.get", Why: "looks a name up in what was parsed"},
		{Func: "impl/tlc.parse", Targets: []string{"impl/tlc.FuzzOutput"}},
		{Func: "model.Normal", Targets: []string{"model.FuzzNormal"}},
		{Func: "model.valueParser.take", Targets: []string{"model.FuzzNormal"}},
		{Func: "impl/transport/verbs.readGID", Why: "a line of the kernel's; odd ones are in TestDevices_OddTrees_AreReadAsFarAsTheyGo"},
	}
}

// Trusted are the folders whose parsers read only what stands in this repository or what its own tools print; a wrong file there is a red
// check and no danger to a node.
func Trusted() map[string]string {
	return map[string]string{
		"impl/bench":                   "reads its own command line and measures on loopback",
		"impl/cmd":                     "commands of the repository over its own files",
		"impl/mutants":                 "reads sources and records of the repository",
		"impl/plants":                  "reads sources and records of the repository",
		"impl/overlay":                 "reads sources of the repository",
		"proofs":                       "reads TLC dumps, solver answers and settings that it makes itself",
		"impl/device/cuda/driver/fake": "a test's driver",
		"impl/device/devicetest":       "a test's device",
		"impl/rig":                     "reads the output of our own test binaries",
		"impl/gpucheck":                "a check that runs by itself, over what it copied to a device",
		"kernels":                      "reads sources, images and records of the repository, and what its emulation prints",
	}
}
