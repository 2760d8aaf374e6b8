package config

import "slices"

// Scope says which of the flags a command has: those that can change what it does.
type Scope uint8

// The scopes. A file is read whole in each of them.
const (
	Everything     Scope = iota // nodes of any role
	GatewayAlone                // a gateway without nodes in its process
	OperatorClient              // who asks a running node's operator listener
)

// has reports whether a command of scope s has the flag.
func (s Scope) has(flag string) bool {
	tls := []string{"tls-cert", "tls-key", "tls-ca", "operator", "operator-plain"}
	switch s {
	case GatewayAlone:
		return slices.Contains(append(tls, "gateway", "gateway-plain", "upstream", "upstream-as", "keys-file", "header-proxy", "window-tokens",
			"request-timeout", "drain-timeout", "log-level", "log-format"), flag)
	case OperatorClient:
		return slices.Contains(append(tls, "role"), flag)
	}
	return true
}
