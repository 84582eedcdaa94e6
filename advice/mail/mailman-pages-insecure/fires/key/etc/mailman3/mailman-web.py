SECRET_KEY = 'change-this-on-your-production-server'
