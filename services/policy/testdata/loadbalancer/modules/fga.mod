schema: '1.2'
contents:
  - core.fga
  - enterprise-api.fga
  - load-balancer-api.fga
  - tenant-api.fga
