export PATH=$PATH:/root/bin
