"""Holds every packet that is routed to the device back for so long, then gives it back to the kernel: delay.py NAME MS."""
import collections
import fcntl
import os
import select
import struct
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TUN_WITHOUT_INFO = 0x1001

device, seconds = sys.argv[1].encode(), float(sys.argv[2]) / 1000
tun = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH", device, IFF_TUN_WITHOUT_INFO))
waiting = collections.deque()
print("ready", flush=True)
while True:
    pause = max(0, waiting[0][0] - time.monotonic()) if waiting else None
    if select.select([tun], [], [], pause)[0]:
        waiting.append((time.monotonic() + seconds, os.read(tun, 65535)))
    while waiting and waiting[0][0] <= time.monotonic():
        os.write(tun, waiting.popleft()[1])
