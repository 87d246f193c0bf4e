# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require "net/http"
require "uri"

module Redlockd
  # Carries out talks with net/http, over connections that are kept. Threads may share
  # it: see Dispatcher. A forked child gets connections and operations of its own.
  class Caller
    # A request that has no response so long after it should have one marks its
    # replica: others ask another one meanwhile. It no longer has a place.
    OVERDUE_MS = 500
    KEPT_S = 60
    # before a byte of the response: the server may have closed a kept connection
    CLOSED = [EOFError, Errno::ECONNRESET, Errno::ECONNABORTED, Errno::EPIPE,
              OpenSSL::SSL::SSLError].freeze
    # Not Timeout::Error, which may be that of the user's own timeout.
    FAILURES = [SystemCallError, IOError, SocketError, Net::OpenTimeout, Net::ReadTimeout,
                Net::WriteTimeout, Net::ProtocolError, Net::HTTPBadResponse,
                Net::HTTPHeaderSyntaxError, OpenSSL::SSL::SSLError].freeze

    # No server has got the request.
    class Unsent < StandardError; end

    # One that never connects again by itself: what fails then would look as if it had
    # been sent.
    class Connection < Net::HTTP
      # The server has ended it before the request.
      class Ended < StandardError; end

      # An idle one that can be read has ended, or tells what nobody asked.
      def ended?
        @socket.closed? || !@socket.io.to_io.wait_readable(0).nil?
      end

      # What another thread reads from it fails.
      def cut
        @socket&.close
      rescue IOError, SystemCallError, OpenSSL::SSL::SSLError
        nil
      end

      private

      def connect
        raise Ended if started?

        super
      end
    end

    def initialize(replicas, identity)
      @replicas = replicas
      @identity = identity
      @targets = replicas.urls.to_h { |url| [url, URI.parse(url)] }
      @mutex = Mutex.new
      @process = nil
      @replicas.probe = method(:probe)
    end

    # Runs a talk to its end, and returns what it returns: run { |step|
    # talk.release(hold, &step) }
    def run
      yield method(:perform).to_proc
    end

    # Internal: of Renewals. What is wanted together.
    def add(operations)
      own { @dispatcher }.add(operations)
    end

    # Internal: of Renewals.
    def carry(request)
      own { @dispatcher }.carry(request)
    end

    def close
      idle = own { @idle.tap { @idle = {} } }
      idle.each_value { |kept| kept.each { |connection| hang_up(connection) } }
    end

    private

    # With what is this process's own, and the mutex.
    def own
      @mutex.synchronize do
        unless @process == Process.pid # else it is the parent's
          @idle = {}
          @dispatcher = Dispatcher.new { |wanted, &overdue| ask(wanted, &overdue) }
          @process = Process.pid
        end
        yield
      end
    end

    def perform(step)
      if step.is_a?(Send)
        return step.scope ? own { @dispatcher }.ask(step) : ask(step)
      end

      until_ms = Clock.now_ms + step.ms
      while (left_ms = until_ms - Clock.now_ms).positive?
        sleep([left_ms / 1000, Clock::LONGEST_SLEEP_S].min)
      end
    end

    def probe(url)
      Workers.call { run { |step| Talk.new(@replicas, 0).probe(url, &step) } }
    end

    # Calls the block when the response is overdue, perhaps twice.
    def ask(wanted, &overdue)
      url = wanted.url || @replicas.choose
      used = @identity.authorization
      answer = exchange(wanted, url, used, &overdue)
      return answer unless answer.status == 401 && @identity.refresh(used)

      exchange(wanted, url, @identity.authorization, &overdue).after(answer)
    end

    def exchange(wanted, url, authorization, &overdue)
      sent_ms = Clock.now_ms
      is_overdue = false
      timer = Timers.at(sent_ms + wanted.wait_ms + OVERDUE_MS) do
        is_overdue = true
        @replicas.avoid(url)
        overdue&.call
      end
      response, is_repeated = over_connection(wanted, url, request(wanted, url, authorization))
      answer = Answer.read(response.code.to_i, response.body, retry_after: response["Retry-After"],
                           url: url, sent_ms: sent_ms, is_repeated: is_repeated,
                           content_type: response["Content-Type"])
      @replicas.works(url) if answer.good? && !is_overdue
      answer
    rescue Unsent, *FAILURES => e
      Answer.failure(kind_of(e), words_of(e), url, sent_ms)
    ensure
      Timers.cancel(timer) if timer
    end

    def kind_of(error)
      return Answer::LOST unless error.is_a?(Unsent)

      untrusted?(error) ? Answer::UNTRUSTED : Answer::UNSENT
    end

    def words_of(error)
      untrusted?(error) ? "the server's certificate is not trusted: #{error.message}" : error.message
    end

    def untrusted?(error)
      error.is_a?(Unsent) && error.cause.is_a?(OpenSSL::SSL::SSLError) &&
        error.message.match?(/certificate verify failed|hostname .* does not match/)
    end

    # ---- connections -----------------------------------------------------------

    # Returns the response, and whether the request may have arrived twice.
    def over_connection(wanted, url, request)
      is_repeated = is_stale = false
      begin
        connection = is_stale ? nil : take(url)
        is_kept = !connection.nil?
        connection ||= connect(wanted, url)
        has_begun = false
        connection.read_timeout = (wanted.timeout_ms + wanted.wait_ms) / 1000.0
        connection.write_timeout = wanted.timeout_ms / 1000.0
        response = within(connection, wanted.timeout_ms + wanted.wait_ms) do
          connection.request(request) do |one|
            has_begun = true
            one.read_body
          end
        end
        is_done = true
      rescue Unsent => e
        raise unless is_repeated

        raise IOError, e.message # the first one may have arrived
      rescue Connection::Ended
        is_stale = true
        retry
      rescue *CLOSED
        raise if !is_kept || has_begun || is_stale

        is_stale = is_repeated = true
        retry
      ensure
        # what is under way is ended by that, also if a thread is interrupted
        is_done && connection.started? ? keep(url, connection) : hang_up(connection)
      end
      [response, is_repeated]
    end

    # The timeouts of net/http are of each read and write, this is of all of them.
    def within(connection, most_ms)
      gate = Mutex.new
      is_over = false
      timer = Timers.at(Clock.now_ms + most_ms) { gate.synchronize { connection.cut unless is_over } }
      yield
    ensure
      Timers.cancel(timer) if timer
      gate.synchronize { is_over = true }
    end

    def connect(wanted, url)
      connection = new_connection(@targets[url])
      connection.open_timeout = connection.ssl_timeout = wanted.timeout_ms / 1000.0
      connection.start
    rescue *FAILURES => e
      raise Unsent, e.message
    end

    def new_connection(target)
      host = target.hostname
      is_here = host == "localhost" || host == "::1" || host.start_with?("127.")
      # the environment's proxy, but not to this machine
      connection = is_here ? Connection.new(host, target.port, nil) : Connection.new(host, target.port)
      connection.max_retries = 0
      connection.keep_alive_timeout = KEPT_S
      return connection unless target.scheme == "https"

      connection.use_ssl = true
      connection.min_version = OpenSSL::SSL::TLS1_2_VERSION
      connection.ca_file = @identity.ca_file
      if @identity.certificates
        connection.cert, *connection.extra_chain_cert = @identity.certificates
        connection.key = @identity.key
      end
      connection
    end

    # One that its server has not closed meanwhile.
    def take(url)
      while (connection = own { @idle[url]&.pop })
        return connection unless connection.ended?

        hang_up(connection)
      end
    end

    def keep(url, connection)
      own { (@idle[url] ||= []) << connection }
    end

    def hang_up(connection)
      connection.finish if connection&.started?
    rescue IOError
      nil
    end

    # ---- requests --------------------------------------------------------------

    def request(wanted, url, authorization)
      target = @targets[url]
      one = Net::HTTPGenericRequest.new(wanted.http_method, !wanted.body.nil?, true,
                                        target.path.chomp("/") + wanted.path)
      one["Accept"] = "application/json"
      one.delete("Accept-Encoding")
      wanted.headers.each { |name, value| one[name] = value }
      if authorization
        one["Authorization"] = authorization
      elsif target.user
        one.basic_auth(URI.decode_www_form_component(target.user),
                       URI.decode_www_form_component(target.password.to_s))
      end
      if wanted.body
        one["Content-Type"] = "application/json"
        one.body = wanted.body.is_a?(String) ? wanted.body : JSON.generate(wanted.body)
      end
      one
    end
  end
end
