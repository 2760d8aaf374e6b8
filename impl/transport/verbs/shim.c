//go:build verbs

#include "shim.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

// The calls that are symbols of the library. What verbs.h defines inline goes through the context's own table.
static struct {
  struct ibv_device **(*get_device_list)(int *);
  void (*free_device_list)(struct ibv_device **);
  const char *(*get_device_name)(struct ibv_device *);
  struct ibv_context *(*open_device)(struct ibv_device *);
  int (*close_device)(struct ibv_context *);
  int (*query_device)(struct ibv_context *, struct ibv_device_attr *);
  int (*query_port)(struct ibv_context *, uint8_t, struct ibv_port_attr *);
  int (*query_gid)(struct ibv_context *, uint8_t, int, union ibv_gid *);
  struct ibv_pd *(*alloc_pd)(struct ibv_context *);
  int (*dealloc_pd)(struct ibv_pd *);
  struct ibv_mr *(*reg_mr)(struct ibv_pd *, void *, size_t, int);
  int (*dereg_mr)(struct ibv_mr *);
  struct ibv_comp_channel *(*create_comp_channel)(struct ibv_context *);
  int (*destroy_comp_channel)(struct ibv_comp_channel *);
  struct ibv_cq *(*create_cq)(struct ibv_context *, int, void *, struct ibv_comp_channel *, int);
  int (*destroy_cq)(struct ibv_cq *);
  int (*get_cq_event)(struct ibv_comp_channel *, struct ibv_cq **, void **);
  void (*ack_cq_events)(struct ibv_cq *, unsigned int);
  struct ibv_qp *(*create_qp)(struct ibv_pd *, struct ibv_qp_init_attr *);
  int (*modify_qp)(struct ibv_qp *, struct ibv_qp_attr *, int);
  int (*query_qp)(struct ibv_qp *, struct ibv_qp_attr *, int, struct ibv_qp_init_attr *);
  int (*destroy_qp)(struct ibv_qp *);
  const char *(*wc_status_str)(enum ibv_wc_status);
  int (*get_async_event)(struct ibv_context *, struct ibv_async_event *);
  void (*ack_async_event)(struct ibv_async_event *);
  const char *(*event_type_str)(enum ibv_event_type);
} lib;

const char *kv_load(const char *name) {
  static const char *missing;
  static char why[256];
  if (lib.event_type_str) return NULL;
  void *h = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
  if (!h) {
    strncpy(why, dlerror(), sizeof why - 1);
    return why;
  }
  struct { const char *name; void **at; } want[] = {
#define F(x) {"ibv_" #x, (void **)&lib.x}
    F(get_device_list), F(free_device_list), F(get_device_name), F(open_device), F(close_device), F(query_device), F(query_port),
    F(query_gid), F(alloc_pd), F(dealloc_pd), F(reg_mr), F(dereg_mr), F(create_comp_channel), F(destroy_comp_channel), F(create_cq),
    F(destroy_cq), F(get_cq_event), F(ack_cq_events), F(create_qp), F(modify_qp), F(query_qp), F(destroy_qp), F(wc_status_str),
    F(get_async_event), F(ack_async_event), F(event_type_str),
#undef F
  };
  for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
    if (!(*want[i].at = dlsym(h, want[i].name))) {
      missing = want[i].name;
      lib.event_type_str = NULL;
      return missing;
    }
  }
  return NULL;
}

static int flag_nonblocking(int fd) {
  int f = fcntl(fd, F_GETFL);
  return f < 0 || fcntl(fd, F_SETFL, f | O_NONBLOCK) < 0 ? errno : 0;
}

struct ibv_context *kv_open(const char *device) {
  int n = 0;
  struct ibv_device **l = lib.get_device_list(&n);
  if (!l) return NULL;
  struct ibv_context *c = NULL;
  errno = ENODEV;
  for (int i = 0; i < n; i++) {
    if (!strcmp(device, lib.get_device_name(l[i]))) {
      c = lib.open_device(l[i]);
      break;
    }
  }
  int e = errno;
  lib.free_device_list(l);
  if (c && (e = flag_nonblocking(c->async_fd))) {
    lib.close_device(c);
    c = NULL;
  }
  errno = e;
  return c;
}

int kv_close(struct ibv_context *c) { return lib.close_device(c) ? errno : 0; }

int kv_port_of(struct ibv_context *c, uint8_t port, kv_port *out) {
  struct ibv_port_attr a;
  memset(&a, 0, sizeof a);
  struct verbs_context *v = verbs_get_ctx_op(c, query_port);
  int r = v ? v->query_port(c, port, &a, sizeof a) : lib.query_port(c, port, &a);
  if (r) return r < 0 ? errno : r;
  *out = (kv_port){a.state, a.active_mtu, a.lid, a.link_layer};
  return 0;
}

int kv_gid(struct ibv_context *c, uint8_t port, int index, uint8_t out[16]) {
  union ibv_gid g;
  if (lib.query_gid(c, port, index, &g)) return errno ? errno : EINVAL;
  memcpy(out, g.raw, 16);
  return 0;
}

int kv_limits_of(struct ibv_context *c, kv_limits *out) {
  struct ibv_device_attr a;
  memset(&a, 0, sizeof a);
  int r = lib.query_device(c, &a);
  if (r) return r < 0 ? errno : r;
  *out = (kv_limits){a.max_mr, a.max_mw, a.max_qp, a.max_qp_wr, a.max_sge, a.max_cqe, a.max_mr_size,
    (a.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B) != 0};
  return 0;
}

struct ibv_pd *kv_pd(struct ibv_context *c) { return lib.alloc_pd(c); }
int kv_pd_free(struct ibv_pd *p) { return lib.dealloc_pd(p); }
struct ibv_mr *kv_register(struct ibv_pd *p, uint64_t addr, uint64_t bytes, int access) {
  return lib.reg_mr(p, (void *)(uintptr_t)addr, bytes, access);
}
int kv_deregister(struct ibv_mr *m) { return lib.dereg_mr(m); }
uint32_t kv_lkey(struct ibv_mr *m) { return m->lkey; }
uint32_t kv_rkey(struct ibv_mr *m) { return m->rkey; }

struct ibv_comp_channel *kv_channel(struct ibv_context *c) {
  struct ibv_comp_channel *ch = lib.create_comp_channel(c);
  int e;
  if (ch && (e = flag_nonblocking(ch->fd))) {
    lib.destroy_comp_channel(ch);
    errno = e;
    return NULL;
  }
  return ch;
}
int kv_channel_fd(struct ibv_comp_channel *c) { return c->fd; }
int kv_channel_free(struct ibv_comp_channel *c) { return lib.destroy_comp_channel(c); }
struct ibv_cq *kv_cq(struct ibv_context *c, int entries, struct ibv_comp_channel *ch) { return lib.create_cq(c, entries, NULL, ch, 0); }
int kv_cq_free(struct ibv_cq *q) { return lib.destroy_cq(q); }
int kv_arm(struct ibv_cq *q) { return ibv_req_notify_cq(q, 0); }

int kv_event(struct ibv_comp_channel *c) {
  struct ibv_cq *q;
  void *x;
  if (lib.get_cq_event(c, &q, &x)) return errno ? errno : EIO;
  lib.ack_cq_events(q, 1);
  return 0;
}

int kv_poll(struct ibv_cq *q, kv_wc *out, int most) {
  struct ibv_wc w[64];
  int n = ibv_poll_cq(q, most < 64 ? most : 64, w);
  for (int i = 0; i < n; i++) out[i] = (kv_wc){w[i].wr_id, w[i].status, w[i].opcode, w[i].byte_len, w[i].vendor_err};
  return n;
}

struct ibv_qp *kv_qp(struct ibv_pd *p, struct ibv_cq *q, uint32_t sends, uint32_t recvs, uint32_t sges, uint32_t inlined) {
  struct ibv_qp_init_attr a = {.send_cq = q, .recv_cq = q, .qp_type = IBV_QPT_RC, .sq_sig_all = 0,
    .cap = {.max_send_wr = sends, .max_recv_wr = recvs, .max_send_sge = sges, .max_recv_sge = 1, .max_inline_data = inlined}};
  return lib.create_qp(p, &a);
}
uint32_t kv_qpn(struct ibv_qp *q) { return q->qp_num; }

int kv_qp_init(struct ibv_qp *q, uint8_t port, int remote_write, int remote_read, int bind) {
  struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = port,
    .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | (remote_write ? IBV_ACCESS_REMOTE_WRITE : 0) | (remote_read ? IBV_ACCESS_REMOTE_READ : 0) | (bind ? IBV_ACCESS_MW_BIND : 0)};
  return lib.modify_qp(q, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int kv_qp_connect(struct ibv_qp *q, const kv_conn *c) {
  struct ibv_qp_attr r = {.qp_state = IBV_QPS_RTR, .path_mtu = c->mtu, .dest_qp_num = c->qpn, .rq_psn = c->psn, .max_dest_rd_atomic = 1,
    .min_rnr_timer = c->min_rnr, .ah_attr = {.dlid = c->lid, .port_num = c->port, .is_global = c->is_global}};
  if (c->is_global) {
    memcpy(r.ah_attr.grh.dgid.raw, c->gid, 16);
    r.ah_attr.grh.sgid_index = c->sgid;
    r.ah_attr.grh.hop_limit = c->hop;
  }
  int e = lib.modify_qp(q, &r, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (e) return e;
  struct ibv_qp_attr s = {.qp_state = IBV_QPS_RTS, .timeout = c->timeout, .retry_cnt = c->retry, .rnr_retry = c->rnr_retry, .sq_psn = c->own_psn, .max_rd_atomic = 1};
  return lib.modify_qp(q, &s, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

int kv_qp_error(struct ibv_qp *q) {
  struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};
  return lib.modify_qp(q, &a, IBV_QP_STATE);
}

int kv_qp_state(struct ibv_qp *q, int *state) {
  struct ibv_qp_attr a;
  struct ibv_qp_init_attr i;
  memset(&a, 0, sizeof a);
  int e = lib.query_qp(q, &a, IBV_QP_STATE, &i);
  *state = a.qp_state;
  return e;
}

int kv_qp_free(struct ibv_qp *q) { return lib.destroy_qp(q); }

// kv_post chains up to 64 requests a call of the driver.
int kv_post(struct ibv_qp *q, const kv_wr *w, uint32_t n, const kv_sge *s, uint32_t *posted) {
  enum { CHAIN = 64, PIECES = 512 };
  struct ibv_send_wr r[CHAIN], *bad;
  struct ibv_sge g[PIECES];
  *posted = 0;
  while (n) {
    uint32_t k = 0, used = 0;
    for (; k < n && k < CHAIN && used + w[k].sges <= PIECES; k++) {
      struct ibv_send_wr *o = &r[k];
      memset(o, 0, sizeof *o);
      o->wr_id = w[k].id;
      o->next = o + 1;
      o->sg_list = &g[used];
      o->num_sge = w[k].sges;
      for (uint32_t i = 0; i < w[k].sges; i++, used++) {
        const kv_sge *p = &s[w[k].sge + i];
        g[used] = (struct ibv_sge){p->addr, p->bytes, p->key};
      }
      o->send_flags = (w[k].signaled ? IBV_SEND_SIGNALED : 0) | (w[k].inlined ? IBV_SEND_INLINE : 0) | (w[k].fence ? IBV_SEND_FENCE : 0);
      switch (w[k].op) {
      case KV_WRITE:
      case KV_READ:
        o->opcode = w[k].op == KV_WRITE ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
        o->wr.rdma.remote_addr = w[k].remote;
        o->wr.rdma.rkey = w[k].key;
        break;
      case KV_SEND:
        o->opcode = IBV_WR_SEND;
        break;
      case KV_BIND:
        o->opcode = IBV_WR_BIND_MW;
        o->bind_mw.mw = w[k].mw;
        o->bind_mw.rkey = w[k].key;
        o->bind_mw.bind_info = (struct ibv_mw_bind_info){.mr = w[k].mr, .addr = w[k].remote, .length = w[k].length, .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
        break;
      case KV_INVALIDATE:
        o->opcode = IBV_WR_LOCAL_INV;
        o->invalidate_rkey = w[k].key;
        break;
      default:
        return EINVAL;
      }
    }
    if (!k) return EINVAL;
    r[k - 1].next = NULL;
    int e = ibv_post_send(q, r, &bad);
    if (e) {
      *posted += (uint32_t)(bad - r);
      return e;
    }
    *posted += k;
    w += k;
    n -= k;
  }
  return 0;
}

int kv_recv(struct ibv_qp *q, uint64_t id, uint64_t addr, uint32_t bytes, uint32_t key) {
  struct ibv_sge g = {addr, bytes, key};
  struct ibv_recv_wr w = {.wr_id = id, .sg_list = bytes ? &g : NULL, .num_sge = bytes ? 1 : 0}, *bad;
  return ibv_post_recv(q, &w, &bad);
}

struct ibv_mw *kv_mw(struct ibv_pd *p) { return ibv_alloc_mw(p, IBV_MW_TYPE_2); }
uint32_t kv_mw_key(struct ibv_mw *m) { return m->rkey; }
int kv_mw_free(struct ibv_mw *m) { return ibv_dealloc_mw(m); }
const char *kv_status(uint32_t status) { return lib.wc_status_str(status); }
int kv_async_fd(struct ibv_context *c) { return c->async_fd; }

int kv_async(struct ibv_context *c, uint32_t *type, uint32_t *port) {
  struct ibv_async_event e;
  if (lib.get_async_event(c, &e)) return errno ? errno : EIO;
  *type = e.event_type;
  *port = e.event_type == IBV_EVENT_PORT_ACTIVE || e.event_type == IBV_EVENT_PORT_ERR ? (uint32_t)e.element.port_num : 0;
  lib.ack_async_event(&e);
  return 0;
}
const char *kv_event_name(uint32_t type) { return lib.event_type_str(type); }
