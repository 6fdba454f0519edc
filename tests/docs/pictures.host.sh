# Shows: the pictures of the documentation show what the commands in them print now; the others are made again by
# `cargo xtask picture --record`, which needs a guest or other programs.
# stdout: ^ask: as it is printed now$
# stdout: ^from-bpftrace: as it is printed now$
# stdout: ^mistakes: as it is printed now$

"$XTASK" picture --check ask from-bpftrace mistakes
