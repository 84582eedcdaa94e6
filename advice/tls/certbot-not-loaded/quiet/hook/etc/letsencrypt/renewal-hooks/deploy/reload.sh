#!/bin/sh
systemctl reload nginx
