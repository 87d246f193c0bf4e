# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require "uri"

module Redlockd
  # Connections to the servers, for any number of locks and threads.
  class Client
    DEFAULT_URL = "http://127.0.0.1:8080"

    attr_reader :logger, :talk, :caller # the last two are internal

    # What is omitted comes from the environment: REDLOCKD_URL (several URLs with commas
    # between them), REDLOCKD_AUTH_TOKEN or REDLOCKD_AUTH_TOKEN_FILE, REDLOCKD_CACERT,
    # REDLOCKD_CERT, REDLOCKD_KEY.
    #
    # urls: of the replicas, in the order in which they are asked. timeout: seconds for
    # a connection, and for a response. logger: a Logger, for what is not raised.
    # auth_token, auth_token_file: the access token, or a file that has it, which is
    # read again after a 401. ca_file, cert_file, key_file: PEM files. Raises
    # ArgumentError.
    def initialize(urls = nil, timeout: 5, logger: nil, **identity)
      urls = read_urls(urls || ENV.fetch("REDLOCKD_URL", ""))
      raise ArgumentError, "a timeout is longer than 0 s" unless timeout.positive?

      @logger = logger
      replicas = Replicas.new(urls)
      @talk = Talk.new(replicas, timeout * 1000.0, logger)
      @caller = Caller.new(replicas, Identity.new(**identity))
    end

    # A lock: see Lock. With a block: acquires it, yields it, and releases it. Raises
    # ArgumentError.
    #
    # ttl: seconds until the lock of a dead holder expires; nil: as the server says.
    # wait: seconds to wait for it, and for a server; nil: without a limit. owner: a
    # label, shown to clients that find the lock held. limit: how many permits the
    # resource has, and permits: how many of them to take. shared: as a reader.
    # interrupt: a loss is raised in the block at once. on_loss: called with the
    # LockLost, by another thread.
    def lock(*resources, ttl: nil, wait: nil, owner: nil, limit: nil, permits: 1, shared: false,
             interrupt: false, on_loss: nil, &block)
      wanted = Wanted.new(resources: resources.flatten, ttl_ms: ttl && (ttl * 1000).round,
                          wait_ms: wait && wait * 1000.0, owner: owner, limit: limit,
                          permits: permits, shared: shared)
      one = Lock.new(self, wanted, interrupt: interrupt, on_loss: on_loss)
      block ? one.with(&block) : one
    end

    # Who holds the lock, as a HeldLock; nil: nobody.
    def get(resource)
      of = @caller.run { |step| @talk.holder(resource, &step) }
      of && HeldLock.read(of)
    end

    # The locks that are held, with resources that begin with the prefix; an Enumerator
    # without a block. A lock that is granted or expires meanwhile may be listed or not.
    def locks(prefix = "")
      return enum_for(:locks, prefix) unless block_given?

      seen = {} # a lock may be on two pages
      cursor = ""
      loop do
        query = { "page_size" => 1000, "prefix" => prefix, "cursor" => cursor }
        query = URI.encode_www_form(query.reject { |_, value| value == "" }).gsub("+", "%20")
        body = @caller.run { |step| @talk.get("the list", "/locks?#{query}", "locks", &step) }
        body["locks"].each do |of|
          yield HeldLock.read(of) unless seen[of["id"]]
          seen[of["id"]] = true
        end
        cursor = body["next_cursor"] or return
      end
    end

    # Who holds the lock, now and whenever it changes hands; nil: nobody. Readers who
    # join others, or leave some behind, are no change. It misses nobody who holds the
    # lock for a second, and goes on while servers fail. An Enumerator without a block.
    def watch(resource)
      return enum_for(:watch, resource) unless block_given?

      version = nil
      loop do
        of = @caller.run { |step| @talk.next_holder(resource, version, &step) }
        version = of["version"]
        yield of["held"] ? HeldLock.read(of) : nil
      end
    end

    # Releases the lock of a dead holder; locks() has its id and fencing token. :all: the
    # locks of all readers. The holder is not notified. false: no lock with this fencing
    # token is held (any more).
    def force_release(id, fencing_token)
      unless fencing_token.is_a?(Integer) || fencing_token == :all
        raise ArgumentError, "a fencing token is an Integer, or :all"
      end

      @caller.run { |step| @talk.force(id, fencing_token, &step) }
    end

    # Closes the connections; the next call opens new ones.
    def close
      @caller.close
    end

    def inspect
      "#<Redlockd::Client>"
    end

    private

    def read_urls(urls)
      urls = urls.is_a?(String) ? urls.split(",") : urls.to_a
      urls = urls.map { |url| url.strip.chomp("/") }.reject(&:empty?)
      urls = [DEFAULT_URL] if urls.empty?
      urls.each do |url|
        target = begin
          URI.parse(url)
        rescue URI::InvalidURIError
          nil
        end
        next if target.is_a?(URI::HTTP) && !target.hostname.to_s.empty? && !target.query && !target.fragment

        raise ArgumentError, "not an http:// or https:// URL: #{Replicas.shown(url)}"
      end
    end
  end
end
