DEBUG = True
ALLOWED_HOSTS = ['lists.example.com']
