-- wrk: acquires and releases, each time another resource.
--
-- wrk tells which thread a response belongs to, not which connection. So the
-- locks of a thread lie in one list: whoever is next releases one, or acquires.

local threads = 0

function setup(thread)
  threads = threads + 1
  thread:set("id", threads)
end

function init()
  run = string.format("%d:%d", os.time(), id)
  count = 0
  held = {}
  headers = { ["Content-Type"] = "application/json" }
  bad = 0
end

function request()
  local lock = table.remove(held)
  if lock then
    return wrk.format("DELETE", lock.path, { ["X-Lock-Token"] = lock.token })
  end
  count = count + 1
  local body = string.format('{"resource":"%s:%d","ttl_ms":30000}', run, count)
  return wrk.format("POST", "/locks", headers, body)
end

function response(status, fields, body)
  if status == 201 then
    held[#held + 1] = {
      path = fields["Location"],
      token = body:match('"token":"([^"]+)"'),
    }
  elseif status ~= 200 then
    bad = bad + 1
  end
end
