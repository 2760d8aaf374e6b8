# Sourced in the rig: two devices with a large MTU (the rails), and one with a small one.
ip link set lo up
for i in 0 1 2; do
  ip link add rd$i type dummy
  ip addr add 10.99.$i.1/24 dev rd$i
done
ip link set rd0 mtu 4200 up
ip link set rd1 mtu 4200 up
ip link set rd2 mtu 1500 up
for i in 0 1 2; do rdma link add rxe$i type rxe netdev rd$i; done
ulimit -l unlimited
export KVFENCE_RDMA_DEVICES=rxe0,rxe1 KVFENCE_RDMA_NETDEVS=rd0,rd1 KVFENCE_RDMA_SMALL=rxe2
