# frozen_string_literal: true
# SPDX-License-Identifier: MIT

# Redlock over ruby-redis (Debian's), as redlock-rb does it, which Debian does not
# have: one node after the other, each with one connection, which threads share;
# scripts by their digests. ruby-redis lets one thread at a time use a connection.

require "redis"
require "securerandom"
require_relative "tally"

DRIFT_FACTOR = 0.01
ACQUIRE = <<~LUA
  local value = redis.call("GET", KEYS[1])
  if value == ARGV[1] or not value then
    return redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
  end
LUA
RELEASE = <<~LUA
  if redis.call("GET", KEYS[1]) == ARGV[1] then
    return redis.call("DEL", KEYS[1])
  else
    return 0
  end
LUA

nodes = WHERE.map { |node| Redis.new(url: "redis://#{node}") }
acquire, release = [ACQUIRE, RELEASE].map do |script|
  nodes.map { |node| node.script(:load, script) }.first
end

tally do |name|
  value = SecureRandom.uuid
  start = now_us
  granted = nodes.count { |node| node.evalsha(acquire, [name], [value, TTL_S * 1000]) }
  is_valid = now_us - start < TTL_S * 1e6 * (1 - DRIFT_FACTOR)
  nodes.each { |node| node.evalsha(release, [name], [value]) }
  raise "#{name}: not acquired" unless granted > nodes.size / 2 && is_valid
end
