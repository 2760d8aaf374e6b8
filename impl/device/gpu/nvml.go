//go:build cuda && cgo && linux

package gpu

import (
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// library is what is used of nvml.Interface, and handle of nvml.Device. Tests put go-nvml's mocks there.
type library interface {
	Init() nvml.Return
	Shutdown() nvml.Return
	Extensions() nvml.ExtendedInterface
	SystemGetDriverVersion() (string, nvml.Return)
	SystemGetNVMLVersion() (string, nvml.Return)
	SystemGetCudaDriverVersion() (int, nvml.Return)
	DeviceGetCount() (int, nvml.Return)
	DeviceGetHandleByIndex(int) (nvml.Device, nvml.Return)
	EventSetCreate() (nvml.EventSet, nvml.Return)
}

type handle interface {
	GetUUID() (string, nvml.Return)
	GetName() (string, nvml.Return)
	GetPciInfo() (nvml.PciInfo, nvml.Return)
	GetComputeMode() (nvml.ComputeMode, nvml.Return)
	GetMigMode() (int, int, nvml.Return)

	GetMemoryInfo() (nvml.Memory, nvml.Return)
	GetMemoryInfo_v2() (nvml.Memory_v2, nvml.Return)
	GetComputeRunningProcesses() ([]nvml.ProcessInfo, nvml.Return)
	GetGraphicsRunningProcesses() ([]nvml.ProcessInfo, nvml.Return)

	GetEccMode() (nvml.EnableState, nvml.EnableState, nvml.Return)
	GetTotalEccErrors(nvml.MemoryErrorType, nvml.EccCounterType) (uint64, nvml.Return)
	GetRemappedRows() (int, int, bool, bool, nvml.Return)
	GetRetiredPagesPendingStatus() (nvml.EnableState, nvml.Return)
	GetFieldValues([]nvml.FieldValue) nvml.Return
	GetNvLinkState(int) (nvml.EnableState, nvml.Return)
	GetNvLinkErrorCounter(int, nvml.NvLinkErrorCounter) (uint64, nvml.Return)

	GetNvLinkRemoteDeviceType(int) (nvml.IntNvLinkDeviceType, nvml.Return)
	GetNvLinkRemotePciInfo(int) (nvml.PciInfo, nvml.Return)
	GetTopologyCommonAncestor(nvml.Device) (nvml.GpuTopologyLevel, nvml.Return)

	GetSupportedEventTypes() (uint64, nvml.Return)
	RegisterEvents(uint64, nvml.EventSet) nvml.Return
}

// symbols are the functions behind library and handle. The linker leaves them open until they are called, and then a missing one ends the process: none is
// called before it was looked up. Those of need are as old as NVML itself; without one of want the card merely does not tell what it would.
type symbols struct{ has map[string]bool }

const (
	symMemory2    = "nvmlDeviceGetMemoryInfo_v2"
	symMIG        = "nvmlDeviceGetMigMode"
	symComputes   = "nvmlDeviceGetComputeRunningProcesses"
	symGraphics   = "nvmlDeviceGetGraphicsRunningProcesses"
	symECCMode    = "nvmlDeviceGetEccMode"
	symECC        = "nvmlDeviceGetTotalEccErrors"
	symRemapped   = "nvmlDeviceGetRemappedRows"
	symRetired    = "nvmlDeviceGetRetiredPagesPendingStatus"
	symFields     = "nvmlDeviceGetFieldValues"
	symLink       = "nvmlDeviceGetNvLinkState"
	symLinkErrors = "nvmlDeviceGetNvLinkErrorCounter"
	symLinkType   = "nvmlDeviceGetNvLinkRemoteDeviceType"
	symLinkPeer   = "nvmlDeviceGetNvLinkRemotePciInfo"
	symAncestor   = "nvmlDeviceGetTopologyCommonAncestor"
	symEvents     = "nvmlDeviceGetSupportedEventTypes"
	symRegister   = "nvmlDeviceRegisterEvents"
	symEventSet   = "nvmlEventSetCreate"
	symEventWait  = "nvmlEventSetWait"
	symEventFree  = "nvmlEventSetFree"
)

// need and want are arrays: nothing may change them.
var (
	need = [...]string{"nvmlShutdown", "nvmlErrorString", "nvmlSystemGetDriverVersion", "nvmlSystemGetNVMLVersion", "nvmlSystemGetCudaDriverVersion", "nvmlDeviceGetCount",
		"nvmlDeviceGetHandleByIndex", "nvmlDeviceGetUUID", "nvmlDeviceGetName", "nvmlDeviceGetPciInfo", "nvmlDeviceGetComputeMode", "nvmlDeviceGetMemoryInfo"}
	want = [...]string{symMemory2, symMIG, symComputes, symGraphics, symECCMode, symECC, symRemapped, symRetired, symFields, symLink, symLinkErrors, symLinkType, symLinkPeer, symAncestor,
		symEvents, symRegister, symEventSet, symEventWait, symEventFree}
)

// versioned have later versions, by which go-nvml calls them where there are any.
var versioned = [...]string{"nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetPciInfo", symComputes, symGraphics, symLinkPeer, symEventWait}

// lookUp finds which symbols there are; missing names the first of need that is not.
func lookUp(lib nvml.ExtendedInterface) (s symbols, missing string) {
	has := func(name string) bool {
		return lib.LookupSymbol(name) == nil ||
			slices.Contains(versioned[:], name) && (lib.LookupSymbol(name+"_v2") == nil || lib.LookupSymbol(name+"_v3") == nil)
	}
	s = symbols{map[string]bool{}}
	for _, n := range need {
		if !has(n) {
			return s, n
		}
	}
	for _, w := range want {
		s.has[w] = has(w)
	}
	return s, ""
}
