// What Go calls of libibverbs, opened at run time. Flat structs cross the border, a batch at a time; every int result is 0 or an
// errno, every pointer is NULL with errno set.
#ifndef KVFENCE_VERBS_SHIM_H
#define KVFENCE_VERBS_SHIM_H
#include <infiniband/verbs.h>
#include <stdint.h>

// kv_sge is one local piece of a work request.
typedef struct { uint64_t addr; uint32_t bytes, key; } kv_sge;

// kv_wr is one work request of a send queue. Its pieces are sges[sge .. sge+sges) of the batch.
typedef struct {
  uint64_t id, remote;             // remote address; of a bind: first byte of the window
  uint64_t length;                 // of a bind: bytes of the window
  void *mw, *mr;                   // of a bind
  uint32_t key;                    // remote key; of a bind: the window's new key; of an invalidate: the key
  uint32_t sge, sges;
  uint8_t op, signaled, inlined, fence;
} kv_wr;
enum { KV_WRITE, KV_SEND, KV_READ, KV_BIND, KV_INVALIDATE };

// kv_wc is one completion.
typedef struct { uint64_t id; uint32_t status, opcode, bytes, vendor; } kv_wc;

// kv_conn is what a queue pair needs to know of its peer.
typedef struct {
  uint32_t qpn, psn, own_psn, mtu;
  uint16_t lid; uint8_t port, sgid, is_global, timeout, retry, rnr_retry, min_rnr, hop;
  uint8_t gid[16];
} kv_conn;

// kv_port is what is known of a port.
typedef struct { uint32_t state, active_mtu, lid, link_layer; } kv_port;

// kv_limits are a device's limits.
typedef struct { uint32_t max_mr, max_mw, max_qp, max_wr, max_sge, max_cqe; uint64_t max_mr_bytes; int windows2; } kv_limits;

const char *kv_load(const char *name); // NULL, or what is missing
struct ibv_context *kv_open(const char *device);
int kv_close(struct ibv_context *c);
int kv_port_of(struct ibv_context *c, uint8_t port, kv_port *out);
int kv_gid(struct ibv_context *c, uint8_t port, int index, uint8_t out[16]);
int kv_limits_of(struct ibv_context *c, kv_limits *out);
struct ibv_pd *kv_pd(struct ibv_context *c);
int kv_pd_free(struct ibv_pd *p);
struct ibv_mr *kv_register(struct ibv_pd *p, uint64_t addr, uint64_t bytes, int access);
int kv_deregister(struct ibv_mr *m);
uint32_t kv_lkey(struct ibv_mr *m);
uint32_t kv_rkey(struct ibv_mr *m);
struct ibv_comp_channel *kv_channel(struct ibv_context *c);
int kv_channel_fd(struct ibv_comp_channel *c);
int kv_channel_free(struct ibv_comp_channel *c);
struct ibv_cq *kv_cq(struct ibv_context *c, int entries, struct ibv_comp_channel *ch);
int kv_cq_free(struct ibv_cq *q);
int kv_arm(struct ibv_cq *q);
int kv_event(struct ibv_comp_channel *c); // takes one event: 0, or EAGAIN
int kv_poll(struct ibv_cq *q, kv_wc *out, int most);
struct ibv_qp *kv_qp(struct ibv_pd *p, struct ibv_cq *q, uint32_t sends, uint32_t recvs, uint32_t sges, uint32_t inlined);
uint32_t kv_qpn(struct ibv_qp *q);
int kv_qp_init(struct ibv_qp *q, uint8_t port, int remote_write, int remote_read, int bind);
int kv_qp_connect(struct ibv_qp *q, const kv_conn *c);
int kv_qp_error(struct ibv_qp *q);
int kv_qp_state(struct ibv_qp *q, int *state);
int kv_qp_free(struct ibv_qp *q);
int kv_post(struct ibv_qp *q, const kv_wr *w, uint32_t n, const kv_sge *s, uint32_t *posted);
int kv_recv(struct ibv_qp *q, uint64_t id, uint64_t addr, uint32_t bytes, uint32_t key);
struct ibv_mw *kv_mw(struct ibv_pd *p);
uint32_t kv_mw_key(struct ibv_mw *m);
int kv_mw_free(struct ibv_mw *m);
const char *kv_status(uint32_t status);
int kv_async_fd(struct ibv_context *c);
int kv_async(struct ibv_context *c, uint32_t *type, uint32_t *port); // takes and acknowledges one event: 0, or EAGAIN
const char *kv_event_name(uint32_t type);
#endif
