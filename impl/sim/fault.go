package sim

// Prefill and decode sides are killed, restarted at the same address with new incarnations, paused and resumed by slot.

// KillPrefill ends a prefill side's processes.
func (w *World) KillPrefill(slot int) {
	if p := w.prefill[slot]; p.up {
		w.note("kill p%d", slot)
		p.crash()
	}
}

// StartPrefill starts it again.
func (w *World) StartPrefill(slot int) {
	if p := w.prefill[slot]; !p.up {
		w.note("start p%d", slot)
		p.start()
	}
}

// KillDecode ends a decode side's processes; its open requests are lost with it.
func (w *World) KillDecode(slot int) {
	if d := w.decode[slot]; d.up {
		w.note("kill d%d", slot)
		d.crash()
	}
}

// StartDecode starts it again.
func (w *World) StartDecode(slot int) {
	if d := w.decode[slot]; !d.up {
		w.note("start d%d", slot)
		d.start()
	}
}

// PausePrefill and PauseDecode stop a side's processes, as SIGSTOP does; what its network card has goes on.
func (w *World) PausePrefill(slot int, paused bool) { w.prefill[slot].paused = paused }
func (w *World) PauseDecode(slot int, paused bool)  { w.decode[slot].paused = paused }
