// Package gpu knows the NVIDIA cards of a machine: which there are, what memory of them is free, whether their memory can still be trusted, and
// how near they are to each other. It asks NVIDIA's management library (NVML) by github.com/NVIDIA/go-nvml, opened at run time: with the build
// tag cuda and cgo; without the tag or the library every call says what is missing.
//
// It allocates nothing and uses no CUDA (impl/device/cuda/driver does), chooses no rails (impl/transport/verbs does, by Card.Info().PCI as its near), and fences
// nothing itself: who owns the pool does.
//
// For impl/node and `kvfence devices`:
//
//	cards, err := gpu.Open()               // ErrNotBuilt, ErrNoLibrary
//	defer cards.Close()
//	card, err := cards.Find("GPU-5f…")     // an index, UUID or PCI address; ErrNoCard, ErrUnusable with the reason
//	mem, err := card.Memory()              // measured now
//	err = mem.Fits(need, reserve)          // before any pool is allocated; ErrCapacity with all numbers
//	go card.Watch(ctx, func(f gpu.Fault) { // one at a time; f.Action() says what to do
//		if f.Fatal { dev.Fail(f) }     // a Fault is an error
//	})
//	err = card.Ready()                     // may new leases be given on this card?
//
// The rule. A fault after which bytes of the card may be wrong or gone is Fatal: fence the card and quarantine its pool; nothing in this process makes
// it good again. A fault after which the card's health cannot be seen (Blind: the watcher ended, the library hangs) or that wants a reset
// without lost data refuses readiness: no new leases, what runs may end. Anything else is reported. An Xid that is not in the catalogue is Fatal.
//
// Indexes here are NVML's, in order of PCI addresses. CUDA may number the same cards otherwise (CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER): what
// goes from one to the other is the UUID.
//
// Limits. Cards in MIG mode are refused: instances cannot be fenced one by one. A card without events tells no Xids (KindNoEvents). With ECC off bad bits are
// not seen at all (Health.ECC). Switch errors (SXids) are in the kernel's log only, and not read. The linker leaves NVML's functions open and binds
// each at its first call: a compiler that links with -z now by default makes a program that does not start (a test looks).
//
// Read next: fault.go (kinds and the rule), xid.go (the catalogue), health.go (what is polled), watch.go. Not run on a GPU: the tests inject faults
// through go-nvml's mocks of a DGX H100, and one goes through a small library of ours.
package gpu
