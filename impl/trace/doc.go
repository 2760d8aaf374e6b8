// Package trace turns the steps of the machines of impl/core into the lines of spec/trace.go, writes them to a file without keeping
// the loops waiting, and reads them back strictly. There is one trace point: whoever steps a machine calls Machine.Step with the
// event and the actions. The lines name no tenant, prompt, token, key or address.
//
// It judges nothing: model/follow does. impl/node, impl/sim and `kvfence check` call it. Read next: machine.go, then event.go and
// out.go (what of an event or action is said), writer.go, reader.go; spec/trace.md for the format.
package trace
