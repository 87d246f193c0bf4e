# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require "openssl"

module Redlockd
  # The access token, which may be replaced, and the files for TLS. Those that are
  # omitted come from the environment. Errors never contain the token.
  class Identity
    LONGEST_TOKEN = 4096 # it is sent in a header as it is

    attr_reader :ca_file, :certificates, :key

    def initialize(auth_token: nil, auth_token_file: nil, ca_file: nil, cert_file: nil, key_file: nil)
      if auth_token.nil? && auth_token_file.nil?
        auth_token = variable("REDLOCKD_AUTH_TOKEN")
        auth_token_file = variable("REDLOCKD_AUTH_TOKEN_FILE")
      end
      if auth_token && auth_token_file
        raise ArgumentError, "give either an access token or a file that has it"
      end

      @file = auth_token_file
      @token = @file ? read : auth_token && checked(auth_token, "the access token")
      if [ca_file, cert_file, key_file].none?
        ca_file = variable("REDLOCKD_CACERT")
        cert_file = variable("REDLOCKD_CERT")
        key_file = variable("REDLOCKD_KEY")
      end
      raise ArgumentError, "key_file without cert_file: name its certificate" if key_file && !cert_file

      @ca_file = ca_file && readable(ca_file)
      load(readable(cert_file), readable(key_file || cert_file)) if cert_file
    end

    # The value of the header; nil: there is no token.
    def authorization
      @token && "Bearer #{@token}"
    end

    # After a 401: reads the file again. Whether the token differs from the refused
    # value now: another thread may have read it first. A file that cannot be read, or
    # is half written, changes nothing.
    def refresh(refused)
      return false unless @file

      begin
        @token = read
      rescue ArgumentError
        nil
      end
      authorization != refused
    end

    def inspect # without the secrets
      "#<Redlockd::Identity>"
    end

    private

    def variable(name)
      value = ENV[name].to_s
      value unless value.empty?
    end

    def readable(file)
      File.readable?(file) ? file : raise(ArgumentError, "cannot read #{file}")
    end

    def load(cert_file, key_file)
      @certificates = OpenSSL::X509::Certificate.load_file(cert_file)
      # without a passphrase: OpenSSL would ask on the terminal
      @key = OpenSSL::PKey.read(File.read(key_file), "")
    rescue OpenSSL::OpenSSLError => e
      raise ArgumentError, "#{cert_file}, #{key_file}: #{e.message}"
    end

    def read
      checked(File.read(@file).sub(/\r?\n\z/, ""), "the access token in #{@file}")
    rescue SystemCallError
      raise ArgumentError, "cannot read the file of the access token, #{@file}"
    end

    def checked(token, where)
      return token if token.match?(/\A[!-~]+\z/) && token.size <= LONGEST_TOKEN

      raise ArgumentError, "#{where} is not 1 to 4096 ASCII letters, digits and signs"
    end
  end
end
