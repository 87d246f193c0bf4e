# SPDX-License-Identifier: MIT
# The job of README.md with the client for Ruby: job.rb URL DEFAULT_TTL_MS NAME
require "json"
require "uri"
require "openapi_client"
include OpenapiClient

url, ttl, name = ARGV
OpenapiClient.configure do |settings|
  address = URI(url)
  settings.scheme = address.scheme
  settings.host = "#{address.host}:#{address.port}"
  settings.server_index = nil
end
LOCKS = LocksApi.new
MADE_UP = "1795221641865000." + "8f1c27a5" * 5

def expect(holds, what)
  raise what.inspect unless holds
end

def refused(status, code)
  raise "was not refused: #{yield.inspect}"
rescue ApiError => e
  problem = Problem.build_from_hash(JSON.parse(e.response_body, symbolize_names: true))
  expect(e.code == status && problem.status == status, e)
  expect(problem.code == code, problem)
  problem
end

def acquire(resource, **more)
  LOCKS.acquire_lock(AcquireRequest.new(resource: resource, **more))
end

def release(grant)
  expect(LOCKS.release_lock(grant.id, x_lock_token: grant.token).released, grant)
end

def extend_it(grant)
  LOCKS.extend_lock(grant.id, x_lock_token: grant.token)
end

resource = "Straße/#{name}"
first = acquire(resource)
expect(first.resource == resource && first.ttl_ms == ttl.to_i, first)
held = refused(409, "lock_held") { acquire(resource) }
expect(held.held_by.fencing_token == first.fencing_token, held)
expect(LOCKS.get_lock(first.id).fencing_token == first.fencing_token, first)
longer = extend_it(first)
expect(longer.token == first.token && longer.ttl_ms == ttl.to_i, longer)
wrong = refused(400, "invalid_request") { acquire(resource, ttl_ms: 20_001) }
expect(wrong.errors[0].pointer == "/ttl_ms", wrong)

permits = acquire("pool #{name}", limit: 3, permits: 2, ttl_ms: 20_000)
expect(permits.slots.length == 2 && permits.ttl_ms == 20_000, permits)
release(permits)

one, other = Array.new(2) { acquire("report #{name}", mode: LockMode::SHARED) }
expect(one.mode == "shared" && one.token != other.token, one)
release(one)
release(other)

forced = acquire("forced #{name}")
gone = LOCKS.release_lock(forced.id, force: forced.fencing_token.to_s)
expect(gone.released && gone.nodes.released >= 3, gone)
refused(404, "lock_not_found") { extend_it(forced) }

operations = [{operation: OperationKind::EXTEND, id: first.id, token: first.token},
              {operation: OperationKind::RELEASE, id: "nobody", token: MADE_UP},
              {operation: OperationKind::ACQUIRE, resource: "batch #{name}"}]
items = LOCKS.run_batch(BatchRequest.new(operations: operations.map { |one| BatchOperation.new(one) })).results
expect(items.map(&:status) == [200, 404, 201], items)
expect(items[0].grant.token == first.token, items)
expect(items[1].problem.code == "lock_not_found", items)
release(items[2].grant)

release(first)
refused(404, "lock_not_found") { extend_it(first) }
