export PATH=.:$PATH
