ALLOWED_HOSTS = ['lists.example.com']
