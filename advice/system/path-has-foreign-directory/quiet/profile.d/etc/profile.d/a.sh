export PATH=$PATH:/opt/a/bin
