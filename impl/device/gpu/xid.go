package gpu

import (
	"fmt"
	"slices"
)

// Xid is an entry of NVIDIA's public catalogue: "Analyzing Xid Errors with the Xid Catalog" (docs.nvidia.com/deploy/xid-errors, page of 2026-09), for
// Ampere and later: name and immediate action are the catalogue's, read from public copies of its table. Fatal is ours: may bytes of a pool
// on the card be wrong or gone, whichever process caused it? Errors of one process's own channel end that process's context, which its CUDA
// calls say (a sticky error); they are no reason to fence a bystander.
type Xid struct {
	Code   uint32
	Name   string
	Action string // the catalogue's immediate action; empty where it names none
	Fatal  bool
}

// catalogue lists what the catalogue says that cards of today raise, by code. What is not here is fatal: see XidOf.
var catalogue = [...]Xid{
	{8, "ROBUST_CHANNEL_FIFO_ERROR_IDLE_TIMEOUT", "RESTART_APP", false},
	{11, "ROBUST_CHANNEL_GR_ERROR_MISSING_HW", "RESTART_APP", false},
	{13, "ROBUST_CHANNEL_GR_EXCEPTION", "RESTART_APP", false},
	{14, "ROBUST_CHANNEL_FAKE_ERROR", "IGNORE", false},
	{25, "ROBUST_CHANNEL_GR_ILLEGAL_NOTIFY", "RESTART_APP", false},
	{31, "ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT", "RESTART_APP", false},
	{32, "ROBUST_CHANNEL_PBDMA_ERROR", "RESTART_APP", false},
	{37, "ROBUST_CHANNEL_FECS_ERR_UNIMP_FIRMWARE_METHOD", "IGNORE", false},
	{38, "ROBUST_CHANNEL_FECS_ERR_WATCHDOG_TIMEOUT", "IGNORE", false},
	{39, "ROBUST_CHANNEL_CE0_ERROR", "RESTART_APP", false},
	{40, "ROBUST_CHANNEL_CE1_ERROR", "RESTART_APP", false},
	{41, "ROBUST_CHANNEL_CE2_ERROR", "RESTART_APP", false},
	{43, "ROBUST_CHANNEL_RESETCHANNEL_VERIF_ERROR", "IGNORE", false},
	{44, "ROBUST_CHANNEL_GR_FAULT_DURING_CTXSW", "IGNORE", false},
	{45, "ROBUST_CHANNEL_PREEMPTIVE_REMOVAL", "WORKFLOW_XID_45", false}, // follows another, which decides
	{46, "ROBUST_CHANNEL_GPU_TIMEOUT_ERROR", "RESET_GPU", true},
	{48, "ROBUST_CHANNEL_GPU_ECC_DBE", "WORKFLOW_XID_48", true},
	{54, "SILENT_RUNNING_PWR_REDUCED_CLOCKING", "CHECK_MECHANICALS", false},
	{60, "ROBUST_CHANNEL_SEC2_ERROR", "RESTART_APP", false},
	{62, "PMU_HALT_ERROR", "RESET_GPU", true},
	{63, "INFOROM_DRAM_RETIREMENT_EVENT", "IGNORE", false}, // a correctable error can cause it; an uncorrectable one is counted, and 48, 94 or 95
	{64, "INFOROM_DRAM_RETIREMENT_FAILURE", "RESET_GPU", true},
	{66, "ROBUST_CHANNEL_FECS_ERR_REG_ACCESS_VIOLATION", "IGNORE", false},
	{67, "ROBUST_CHANNEL_FECS_ERR_VERIF_VIOLATION", "IGNORE", false},
	{68, "ROBUST_CHANNEL_NVDEC0_ERROR", "RESTART_APP", false},
	{69, "ROBUST_CHANNEL_GR_CLASS_ERROR", "RESTART_APP", false},
	{70, "ROBUST_CHANNEL_CE3_ERROR", "RESTART_APP", false},
	{71, "ROBUST_CHANNEL_CE4_ERROR", "RESTART_APP", false},
	{72, "ROBUST_CHANNEL_CE5_ERROR", "RESTART_APP", false},
	{74, "NVLINK_ERROR", "WORKFLOW_NVLINK_ERR", true}, // a peer's copy over the link may have been cut or wrong
	{75, "ROBUST_CHANNEL_CE6_ERROR", "RESTART_APP", false},
	{76, "ROBUST_CHANNEL_CE7_ERROR", "RESTART_APP", false},
	{77, "ROBUST_CHANNEL_CE8_ERROR", "RESTART_APP", false},
	{79, "ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS", "RESTART_BM", true},
	{80, "PBDMA_PUSHBUFFER_CRC_MISMATCH", "RESTART_APP", true}, // what came over PCIe was not what was sent
	{82, "ROBUST_CHANNEL_NVJPG0_ERROR", "RESTART_APP", false},
	{83, "ROBUST_CHANNEL_NVDEC1_ERROR", "RESTART_APP", false},
	{84, "ROBUST_CHANNEL_NVDEC2_ERROR", "RESTART_APP", false},
	{85, "ROBUST_CHANNEL_CE9_ERROR", "RESTART_APP", false},
	{86, "ROBUST_CHANNEL_OFA0_ERROR", "RESTART_APP", false},
	{88, "ROBUST_CHANNEL_NVDEC3_ERROR", "RESTART_APP", false},
	{89, "ROBUST_CHANNEL_NVDEC4_ERROR", "RESTART_APP", false},
	{92, "EXCESSIVE_SBE_INTERRUPTS", "IGNORE", false}, // corrected ones
	{93, "INFOROM_ERASE_LIMIT_EXCEEDED", "IGNORE", false},
	{94, "ROBUST_CHANNEL_CONTAINED_ERROR", "RESTART_APP", true}, // uncorrectable; contained to a process that may be this one
	{95, "ROBUST_CHANNEL_UNCONTAINED_ERROR", "RESET_GPU", true},
	{106, "SMBPBI_TEST_MESSAGE", "IGNORE", false},
	{107, "SMBPBI_TEST_MESSAGE_SILENT", "IGNORE", false},
	{108, "NVLINK_REMOTE_TRANSLATION_ERROR", "IGNORE", false},
	{109, "ROBUST_CHANNEL_CTXSW_TIMEOUT_ERROR", "RESET_GPU", true},
	{110, "SEC_FAULT_ERROR", "RESET_GPU", true},
	{119, "GSP_RPC_TIMEOUT", "RESET_GPU", true},
	{120, "GSP_ERROR", "RESET_GPU", true},
	{121, "C2C_ERROR", "IGNORE", false}, // corrected ones
	{136, "ALI_TRAINING_FAIL", "RESET_GPU", true},
	{137, "NVLINK_PRIV_ERR", "IGNORE", false},
	{140, "UNRECOVERABLE_ECC_ERROR_ESCAPE", "RESET_GPU", true},
	{141, "ROBUST_CHANNEL_FAST_PATH_ERROR", "IGNORE", false},
	{143, "GPU_INIT_ERROR", "RESET_GPU", true},
	// 144 to 150: NVLink 5. Whether one needs a reset stands in the kernel log's words, which NVML does not give.
	{144, "NVLINK_SAW_ERROR", "WORKFLOW_NVLINK5_ERR", true},
	{145, "NVLINK_RLW_ERROR", "WORKFLOW_NVLINK5_ERR", true},
	{146, "NVLINK_TLW_ERROR", "WORKFLOW_NVLINK5_ERR", true},
	{147, "NVLINK_TREX_ERROR", "WORKFLOW_NVLINK5_ERR", true},
	{148, "NVLINK_NVLPW_CTRL_ERROR", "WORKFLOW_NVLINK5_ERR", true},
	{149, "NVLINK_NETIR_ERROR", "WORKFLOW_NVLINK5_ERR", true},
	{150, "NVLINK_MSE_ERROR", "WORKFLOW_NVLINK5_ERR", true},
	{151, "ROBUST_CHANNEL_KEY_ROTATION_ERROR", "RESTART_VM", true},
	{154, "GPU_RECOVERY_ACTION_CHANGED", "XID_154", false}, // sums up another; the action itself is polled (Health.Recovery)
	{155, "NVLINK_SW_DEFINED_ERROR", "RESET_GPU", true},
	{156, "RESOURCE_RETIREMENT_EVENT", "RESET_GPU", true},
	{157, "RESOURCE_RETIREMENT_FAILURE", "IGNORE", true}, // a bad resource stays in use
	{158, "GPU_FATAL_TIMEOUT", "RESET_GPU", true},
	{159, "ROBUST_CHANNEL_CHI_NON_DATA_ERROR", "CHECK_UVM", true},
	{160, "CHANNEL_RETIREMENT_EVENT", "IGNORE", false},
	{161, "CHANNEL_RETIREMENT_FAILURE", "IGNORE", true},
	{167, "PCIE_FATAL_TIMEOUT", "", true},
	{168, "REDUCED_GPU_MEMORY_CAPACITY", "", true},
	{169, "SEC2_HALT_ERROR", "", true},
	{171, "UNCORRECTABLE_DRAM_ERROR", "", true},
	{172, "UNCORRECTABLE_SRAM_ERROR", "", true},
}

// XidOf is what is known of an Xid; known is false for one that the catalogue does not have, or has without our judgement: it is fatal.
func XidOf(code uint64) (x Xid, known bool) {
	i, found := slices.BinarySearchFunc(catalogue[:], code, func(x Xid, c uint64) int {
		switch {
		case uint64(x.Code) < c:
			return -1
		case uint64(x.Code) > c:
			return 1
		}
		return 0
	})
	if !found {
		return Xid{Fatal: true}, false
	}
	return catalogue[i], true
}

// xidFault is the fault of an Xid.
func xidFault(uuid string, code uint64) Fault {
	x, known := XidOf(code)
	f := Fault{UUID: uuid, Kind: KindXid, Code: code, Fatal: x.Fatal}
	switch {
	case !known:
		f.Detail = fmt.Sprintf("Xid %d is not in the catalogue that this build knows: taken as fatal", code)
	case x.Action == "":
		f.Detail = fmt.Sprintf("Xid %d %s", code, x.Name)
	default:
		f.Detail = fmt.Sprintf("Xid %d %s; NVIDIA's immediate action: %s", code, x.Name, x.Action)
	}
	return f
}
